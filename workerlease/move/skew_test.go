package move_test

import (
	"context"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
	"github.com/slotlease/slotlease/workerlease/move"
)

// apart is a ledger whose servers' clocks may be apart.
type apart struct {
	*memory.Ledger

	by time.Duration
}

func (a apart) Now(ctx context.Context) (store.Stamp, error) {
	s, err := a.Ledger.Now(ctx)
	s.Skew = a.by
	return s, err
}

// The holder may go by a clock that is behind.
func TestAMoveWaitsForTheHolderWhoseServersClockIsBehind(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		const skew = 10 * time.Second
		from, to := apart{memory.New(memory.Options{}), skew}, memory.New(memory.Options{})
		r := storetest.Grant("mail", 1)
		now := time.Now().UTC().Truncate(time.Millisecond)
		r.SlotStart, r.SlotEnd, r.WindowStart, r.WindowEnd = now, now.Add(5*time.Minute), now, now.Add(5*time.Minute)
		r.FixedAt, r.ReadAt, r.Token = now, now, now.UnixMilli()
		for _, l := range []store.Ledger{from, to} {
			must(t, l.(interface{ Init(context.Context) error }).Init(t.Context()))
		}
		must(t, from.Append(t.Context(), r))
		var resumed time.Time
		_, err := move.Move(t.Context(), from, to, move.Options{WorkerType: "mail", Told: func(p move.Progress) {
			if p.Step == move.StepResume {
				resumed = time.Now()
			}
		}})
		if err != nil || resumed.Before(r.WindowEnd.Add(skew)) {
			t.Errorf("Move() = %v, and went on %v after the window's end, want not before %v", err, resumed.Sub(r.WindowEnd), skew)
		}
	})
}
