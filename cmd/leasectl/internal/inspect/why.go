package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/explain"
)

// Question is what Why is asked.
type Question struct {
	At         Moment // zero: now
	InstanceID string // "": all that are known
}

// Why says who had a slot, and why others didn't.
func Why(ctx context.Context, t storeuri.Target, o Options, q Question, s Screen) error {
	return open(ctx, t, o, func(l store.Ledger) error { return showWhy(ctx, t, l, o, q, s) })
}

func showWhy(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, q Question, s Screen) error {
	return once(o, s, lookAtWhy(ctx, t, l, o, q, s.width()))
}

func lookAtWhy(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, q Question, width int) func() (answer, error) {
	return glimpses(ctx, t, l, o, func(ctx context.Context, l *charges.Ledger, found *answer) error {
		found.workerType, found.width = o.WorkerType, width
		return found.take(ctx, l, q)
	})
}

// answer is who had a slot, and why others didn't.
type answer struct {
	explain.Explanation
	glimpse

	workerType string
	instanceID string   // "": all
	roster     bool     // it has workers of the type
	there      []string // those of them that are there
	empty      bool     // there are no records
	unlisted   error    // why the workers aren't known; nil if they are, or the ledger has no roster
	saysLost   []string // who says that the store has lost some
	width      int      // of lines for people
	zone       *time.Location
	ahead      time.Time // when the newest record was written, if that is yet to come; else zero
}

// take asks a ledger.
func (a *answer) take(ctx context.Context, l *charges.Ledger, q Question) error {
	if err := a.now(ctx, l); err != nil {
		return err
	}
	at, err := momentIn(ctx, l, a.workerType, q.At, a.at)
	if err != nil {
		return err
	}
	records, err := recordsAround(ctx, l, a.workerType, at)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		if err := CheckType(ctx, l, a.workerType); err != nil {
			return err
		}
	}
	presences, err := l.Presences(ctx, a.workerType)
	if err != nil && !WithoutRoster(err) {
		return err
	}
	if errors.Is(err, store.ErrRefused) {
		a.unlisted, a.warning = err, Unlisted(err)
	}
	presences = slices.DeleteFunc(presences, func(p store.Presence) bool { return forgotten(p, a.at) })
	a.roster, a.empty = len(presences) > 0, len(records) == 0
	for _, p := range presences {
		if workerlease.IsPresent(p, a.at) {
			a.there = append(a.there, p.InstanceID)
		}
	}
	a.saysLost, a.zone = SayLost(presences, a.at), zone(cmp.Or(statusOf(a.workerType, records, a.at).schedule, scheduleIn(presences)))
	if !a.empty {
		a.ahead = WrittenAhead(records[0], a.at)
	}
	a.Explanation = explain.Explain(explain.Question{At: at, Now: a.at, Records: records, Presences: presences})
	if q.InstanceID == "" {
		return nil
	}
	a.instanceID = q.InstanceID
	return a.only(records)
}

// WrittenAhead is when a record was written by its own times, if those are so far ahead of store time as no worker can have
// read it: then the store's clock was set back since, or another program wrote the record. Else it is the zero time.
func WrittenAhead(r store.Record, now time.Time) time.Time {
	const unsure = 10 * time.Second
	at := r.ReadAt
	if r.FixedAt.After(at) {
		at = r.FixedAt
	}
	if r.Defect != "" || !at.After(now.Add(unsure)) {
		return time.Time{}
	}
	return at
}

// forgotten reports that a worker was last seen so long ago that it isn't shown.
func forgotten(p store.Presence, now time.Time) bool {
	const most = 24 * time.Hour
	return now.Sub(p.Seen).Abs() >= most
}

// only keeps one instance. It may be known by older records alone.
func (a *answer) only(records []store.Record) error {
	known := map[string]bool{}
	for _, r := range records {
		if r.Defect == "" && r.InstanceID != "" && r.Kind == store.KindGrant {
			known[r.InstanceID] = true
		}
	}
	for _, v := range a.Workers {
		known[v.InstanceID] = true
	}
	if known[a.instanceID] {
		a.Workers = slices.DeleteFunc(a.Workers, func(v explain.Verdict) bool { return v.InstanceID != a.instanceID })
		if len(a.Workers) == 0 {
			a.Workers = []explain.Verdict{{InstanceID: a.instanceID, Reason: explain.Unknown}}
		}
		return nil
	}
	var names []string
	for name := range known {
		names = append(names, name)
	}
	if len(names) == 0 {
		return exit.BadUsage("", fmt.Errorf("no such instance %q: no worker of %s is known", a.instanceID, a.workerType))
	}
	names, near := BySimilarity(names, a.instanceID)
	try := ""
	if near > 0 {
		try = "--instance-id " + names[0]
	}
	return exit.BadUsage(try, fmt.Errorf("no such instance %q: of %s are known %s", a.instanceID, a.workerType, Types{Valid: names}))
}
