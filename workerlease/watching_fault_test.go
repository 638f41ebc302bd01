package workerlease_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// hinting gives hints at times since the bubble began.
func hinting(times ...time.Duration) func(context.Context, func(string)) error {
	return func(ctx context.Context, changed func(string)) error {
		for _, d := range times {
			select {
			case <-time.After(d - time.Since(t0)):
				changed("")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

func TestALookThatFailsDelaysNoClaim(t *testing.T) {
	for name, test := range map[string]struct{ failover, ends time.Duration }{
		"of the next slot":        {0, 9*time.Minute + 49*time.Second + 900*time.Millisecond},
		"of the rest of the slot": {2 * time.Minute, 6*time.Minute + 12*time.Second + 400*time.Millisecond},
	} {
		bubble(t, name, func(t *testing.T) {
			inner := memory.New(memory.Options{})
			holder := faultstore.New(inner.Handle(), faultstore.Options{})
			waiting := faultstore.New(inner.Handle(), faultstore.Options{})
			start(t, setup{ledger: struct{ store.Ledger }{holder}, Options: leading("first", 0, test.failover)})
			won := time.Hour
			second := &hooked{Ledger: waiting, afterAppend: func(store.Record) { won = min(won, time.Since(t0)) }}
			o := leading("second", 1, test.failover)
			o.MaxBackoff = time.Minute
			start(t, setup{ledger: watcher{second, hinting(5*time.Minute + 30*time.Second)}, Options: o})
			at(5*time.Minute + 20*time.Second)
			holder.Break(faultstore.Down())
			waiting.Break(faultstore.Down())
			at(test.ends) // Shortly before this worker may claim.
			waiting.Mend()
			at(test.ends + time.Minute)
			if took := won - test.ends; took <= 0 || took > 2200*time.Millisecond {
				t.Errorf("claimed %v after the outage, want its turn", took)
			}
		})
	}
}

// drawing counts the steps of workers: each draws once.
type drawing struct{ n atomic.Int64 }

func (d *drawing) Read(b []byte) (int, error) {
	d.n.Add(1)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return len(b), nil
}

func TestManyHintsCostFewSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		start(t, setup{ledger: inner.Handle(), Options: leading("first", 0, 0)})
		drawn := &drawing{}
		client := workerlease.NewClient(watcher{inner.Handle(), func(ctx context.Context, changed func(string)) error {
			for ctx.Err() == nil {
				changed("")
				time.Sleep(20 * time.Millisecond)
			}
			return ctx.Err()
		}}, workerlease.ClientOptions{Rand: drawn})
		at(time.Minute)
		start(t, setup{client: client, Options: leading("second", 1, 0)})
		at(6 * time.Minute)
		drawn.n.Store(0)
		at(7 * time.Minute)
		if n := drawn.n.Load(); n > 200 {
			t.Errorf("%d steps in a minute of hints, want few", n)
		}
	})
}

func TestALookThatOutlastsAWindowClaimsNothingBeforeItsTurn(t *testing.T) {
	const end = 6*time.Minute + 12500*time.Millisecond // Of the holder's part of the slot.
	for before := 10 * time.Millisecond; before < 150*time.Millisecond; before += 10 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			inner := memory.New(memory.Options{})
			holder := faultstore.New(inner.Handle(), faultstore.Options{})
			start(t, setup{ledger: struct{ store.Ledger }{holder}, Options: leading("first", 0, 2*time.Minute)})
			claimed := time.Hour
			slow := &hooked{Ledger: inner.Handle(), before: func() error {
				time.Sleep(50 * time.Millisecond)
				return nil
			}, beforeAppend: func(store.Record) { claimed = min(claimed, time.Since(t0)) }}
			start(t, setup{ledger: watcher{slow, hinting(end - before)}, Options: leading("third", 2, 2*time.Minute)})
			at(5*time.Minute + 20*time.Second)
			holder.Break(faultstore.Down())
			at(end + 10*time.Second)
			if claimed < end+2*time.Second {
				t.Errorf("claims %v after the end because of a hint %v before it, want its turn, the third", claimed-end, before)
			}
		})
	}
}
