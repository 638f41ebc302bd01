package inspect

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// Plan is what is known of the slots of a worker type that come.
type Plan struct {
	// Schedule is the one that the newest records name, or its workers in the roster where they had no slot yet; empty
	// if none is known.
	Schedule string
	Now      time.Time // of the store
	// Note is what may keep its workers from the slots, for people: orders, a record that can't be obeyed, another
	// schedule or job. Empty if nothing is known.
	Note string
	// Job is the times of its job, as a worker that is there has them; nil if none says.
	Job *store.JobTimes
}

// PlanOf reads what is known of the slots of a worker type that come.
func PlanOf(ctx context.Context, t storeuri.Target, workerType string) (p Plan, err error) {
	ledger, err := t.Open(ctx, true)
	if err != nil {
		return p, advice.ForStore(t, err)
	}
	defer func() { err = errors.Join(err, advice.ForStore(t, storeuri.Close(ctx, ledger))) }()
	stamp, err := ledger.Now(ctx)
	if err != nil {
		return p, advice.ForStore(t, err)
	}
	records, _, err := ledger.Tail(ctx, workerType, statusRecords)
	if err == nil && len(records) == 0 {
		err = CheckType(ctx, ledger, workerType)
	}
	if err != nil {
		return p, advice.ForStore(t, err)
	}
	crew, _ := rosterOf(ctx, ledger, workerType)
	s := statusOf(workerType, records, stamp.Time)
	if s.schedule == "" {
		s.schedule = scheduleIn(crew)
	}
	var notes []string
	if len(s.orders) > 0 {
		notes = append(notes, s.orderNote())
	}
	if len(s.rows) > 0 {
		if text := obstacle(s.rows, records[0]); text != "" {
			notes = append(notes, text)
		}
	}
	there := slices.DeleteFunc(crew, func(w store.Presence) bool { return !workerlease.StandingOf(w, s.rows, stamp.Time).There() })
	if names := s.schedules(there, stamp.Time); len(names) > 1 {
		notes = append(notes, "schedules differ: "+listed(names)+"; "+advice.OneSchedule(names))
	}
	s.job = jobOf(there)
	s.compareJobs(there)
	notes = append(notes, s.warnings...)
	if s.job == nil && !s.due.IsZero() {
		notes = append(notes, "the times of its job aren't known, since no worker that is there says them: give --once-per-slot and its options")
	}
	return Plan{Schedule: s.schedule, Now: stamp.Time, Note: strings.Join(notes, "; "), Job: s.job}, nil
}
