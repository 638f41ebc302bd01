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
	"github.com/slotlease/slotlease/workerlease/history"
)

// Plan is what is known of the slots of a worker type that come.
type Plan struct {
	// Schedule is the one that the newest records name, or its workers in the roster where they had no slot yet; empty
	// if none is known.
	Schedule string
	Now      time.Time // of the store
	// Note is what may keep its workers from the slots, for people: orders, a record that can't be obeyed, another
	// schedule. Empty if nothing is known.
	Note string
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
	crew := rosterOf(ctx, ledger, workerType)
	s := statusOf(workerType, records, stamp.Time)
	if s.schedule == "" {
		s.schedule = scheduleIn(crew)
	}
	var notes []string
	if len(s.orders) > 0 {
		notes = append(notes, orderNote(s.orders))
	}
	if rows := history.Read(records, stamp.Time, nil); len(rows) > 0 {
		if text := obstacle(rows, records[0]); text != "" {
			notes = append(notes, text)
		}
	}
	present := func(w store.Presence) bool { return workerlease.IsPresent(w, stamp.Time) }
	if names := s.schedules(slices.DeleteFunc(crew, func(w store.Presence) bool { return !present(w) })); len(names) > 1 {
		notes = append(notes, "schedules differ: "+listed(names))
	}
	return Plan{Schedule: s.schedule, Now: stamp.Time, Note: strings.Join(notes, "; ")}, nil
}
