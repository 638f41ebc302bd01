package move

import (
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// wait waits until nobody holds the lease on the first store, surely, and nothing more is appended there.
func (m *mover) wait(ctx context.Context) error {
	last := int64(-1)
	for {
		head, stamp, err := m.look(ctx, m.from)
		if err != nil {
			return fmt.Errorf("the first store: %w", err)
		}
		if head.WindowEnd, err = m.heldUntil(ctx, head); err != nil {
			return fmt.Errorf("the first store: %w", err)
		}
		if err := m.paused(head); err != nil {
			return err
		}
		// The stamp was made before now, and no worker's store time is behind it by more than the skew.
		left := head.WindowEnd.Sub(stamp.Time.Add(-stamp.Skew))
		switch {
		case left > 0:
			m.result.Step = StepWait
			m.o.Told(Progress{Step: StepWait, Until: head.WindowEnd, Holder: head.InstanceID})
			left, head.Seq = min(left+stamp.Granularity, looks), -1
		case head.Seq == last:
			return nil
		case head.Attempt > 0 && !machine.IsDoneIn(head, slots.Slot{Start: head.SlotStart, End: head.SlotEnd}):
			left = closes
		default:
			left = settles
		}
		last = head.Seq
		if err := m.sleep(ctx, left); err != nil {
			return err
		}
	}
}

// heldUntil is when the lease ends by the newest record, or by one that an override ended: its holder works on until it
// notices. A window that goes beyond its slot isn't that of a worker.
func (m *mover) heldUntil(ctx context.Context, head store.Record) (time.Time, error) {
	records, _, err := m.from.Tail(ctx, m.o.WorkerType, needed)
	end, overridden := head.WindowEnd, false
	for _, r := range records {
		if overridden && r.Kind == store.KindGrant && r.WindowEnd.After(end) && !r.WindowEnd.After(r.SlotEnd) {
			end = r.WindowEnd
		}
		overridden = overridden || r.Kind == store.KindOverride
	}
	return end, err
}

// sleep waits, at most until ctx ends.
func (m *mover) sleep(ctx context.Context, d time.Duration) error {
	t := m.o.Clock.Timer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
