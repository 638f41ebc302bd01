package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// Reader looks at a ledger, and returns what the commands print with --output json. Errors are those of the commands.
type Reader struct {
	Target  storeuri.Target // which the ledger is of
	Ledger  store.Ledger
	Timeout time.Duration // of each look
}

// options are those of a look at a worker type.
func (r Reader) options(workerType string) Options {
	return Options{WorkerType: workerType, Timeout: r.Timeout}
}

// Status is the state of a worker type, or of all if it is empty, each with so many of its newest slots.
func (r Reader) Status(ctx context.Context, workerType string, recent int) (Overview, error) {
	return dataOf[Overview](lookAtStatus(ctx, r.Target, r.Ledger, r.options(workerType), overview{recent: recent}))
}

// Slots are the newest slots of a worker type, so many at most.
func (r Reader) Slots(ctx context.Context, workerType string, last int) (Snapshot, error) {
	o := r.options(workerType)
	o.Last = last
	return dataOf[Snapshot](lookAtSlots(ctx, r.Target, r.Ledger, o))
}

// Workers are those of a worker type, or of all if it is empty.
func (r Reader) Workers(ctx context.Context, workerType string) (Crew, error) {
	return dataOf[Crew](lookAtWorkers(ctx, r.Target, r.Ledger, r.options(workerType)))
}

// Why says who had a slot, and why others didn't.
func (r Reader) Why(ctx context.Context, workerType string, q Question) (Answer, error) {
	return dataOf[Answer](lookAtWhy(ctx, r.Target, r.Ledger, r.options(workerType), q, 0))
}

// Run are the runs of one slot, as [Run] shows them.
func (r Reader) Run(ctx context.Context, workerType string, at Moment) (Snapshot, error) {
	o := r.options(workerType)
	o.Last = 10
	return dataOf[Snapshot](lookAtRun(ctx, r.Target, r.Ledger, o, at))
}

// dataOf is what a look finds, as JSON shows it.
func dataOf[D any, V interface{ data() D }](look func() (V, error)) (none D, err error) {
	found, err := look()
	if err != nil {
		return none, err
	}
	return found.data(), nil
}

// Recent is one of the newest slots of a worker type. Its names don't change.
type Recent struct {
	SlotStart string        `json:"slotStart"`
	SlotEnd   string        `json:"slotEnd"`
	State     history.State `json:"state"`
	Result    store.Result  `json:"result,omitempty"`
	Cause     store.Cause   `json:"cause,omitempty"` // of work that failed
	Silent    bool          `json:"silent,omitempty"`
	Count     int           `json:"count,omitempty"` // of slots in one: 2 or more
	// Order is the kind of the order that was in force when a slot began that nobody had.
	Order store.OrderKind `json:"order,omitempty"`
}

// recentOf are the newest slots in records, so many at most, oldest first.
func recentOf(records []store.Record, now time.Time, most int) (found []Recent) {
	if most == 0 {
		return nil
	}
	for _, e := range slices.Backward(history.Read(records, now, nil)) {
		if e.Slot.Start.IsZero() || e.State == history.Poison {
			continue
		}
		row := Recent{SlotStart: jsonTime(e.Slot.Start), SlotEnd: jsonTime(e.Slot.End), State: e.State, Cause: e.Cause, Silent: e.Silent()}
		if e.OutcomeKnown {
			row.Result, row.Cause = e.Outcome.Result, cmp.Or(e.Cause, e.Outcome.Cause)
		}
		if e.Count > 1 {
			row.Count = e.Count
		}
		if e.State == history.Missed || e.State == history.Free {
			row.Order = pausedAt(records, e.Slot.Start)
		}
		if found = append(found, row); len(found) == most {
			break
		}
	}
	slices.Reverse(found)
	return found
}

// pausedAt is the kind of a pause or a drain in force at a time, by the newest record up to then; empty if there is none.
func pausedAt(records []store.Record, at time.Time) store.OrderKind {
	for _, r := range records {
		if r.CheckEnvelope() != nil || r.FixedAt.After(at) {
			continue
		}
		for _, o := range r.OrdersAt(at) {
			if o.Kind == store.OrderPause || o.Kind == store.OrderDrain {
				return o.Kind
			}
		}
		return ""
	}
	return ""
}
