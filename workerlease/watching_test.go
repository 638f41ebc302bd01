package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// leading are the options of a leader.
func leading(name string, priority int, failover time.Duration) workerlease.Options {
	o := named(name, priority)
	o.Continuous, o.FailoverWithin = true, failover
	return o
}

func TestACleanHandoverTakesMilliseconds(t *testing.T) {
	for _, failover := range []time.Duration{20 * time.Second, time.Minute} {
		for stops := 5*time.Minute + time.Second; stops < 9*time.Minute+45*time.Second; stops += 3700 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				ledger := memory.New(memory.Options{})
				first := start(t, setup{ledger: ledger.Handle(), Options: leading("first", 0, failover)})
				third := start(t, setup{ledger: ledger.Handle(), Options: leading("third", 2, failover)})
				second := start(t, setup{ledger: ledger.Handle(), Options: leading("second", 1, failover)})
				at(stops)
				first.stop(t)
				at(stops + time.Second)
				apart(t, first, second, third)
				if took := second.turn(t, 0).allocated - stops; took > 20*time.Millisecond {
					t.Errorf("%v: stopped at %v, and the next one works %v later", failover, stops, took)
				}
				if n := len(third.history()); n > 0 {
					t.Errorf("%v: stopped at %v, and a lower priority works, too", failover, stops)
				}
			})
		}
	}
}

// A leader without FailoverWithin waits for the next slot, whether hints come or not.
func TestWithoutFailoverWithinNoRestIsTaken(t *testing.T) {
	for name, second := range map[string]func(*memory.Ledger) store.Ledger{
		"hints": func(l *memory.Ledger) store.Ledger { return l.Handle() },
		"none":  func(l *memory.Ledger) store.Ledger { return struct{ store.Ledger }{l.Handle()} },
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			first := start(t, setup{ledger: ledger.Handle(), Options: leading("first", 0, 0)})
			other := start(t, setup{ledger: second(ledger), Options: leading("second", 1, 0)})
			at(7 * time.Minute)
			first.stop(t)
			at(11 * time.Minute)
			if began := other.turn(t, 0).allocated; began < 10*time.Minute || began > 10*time.Minute+20*time.Millisecond {
				t.Errorf("stopped at 7m, and the next one works at %v, want 10m", began)
			}
		})
	}
}

// watcher is a ledger whose hints a test gives.
type watcher struct {
	store.Ledger
	watch func(ctx context.Context, changed func(string)) error
}

func (w watcher) Watch(ctx context.Context, changed func(string)) error { return w.watch(ctx, changed) }

func TestWithoutReleasesAWatchCostsNothing(t *testing.T) {
	for _, failover := range []time.Duration{0, 20 * time.Second} {
		var with, without map[faultstore.Op]int
		for _, counts := range []*map[faultstore.Op]int{&with, &without} {
			synctest.Test(t, func(t *testing.T) {
				inner := memory.New(memory.Options{})
				counter := faultstore.NewCounter(inner.Handle())
				var ledger store.Ledger = counter
				if counts == &without {
					ledger = struct{ store.Ledger }{counter}
				}
				start(t, setup{ledger: inner.Handle(), Options: leading("first", 0, failover)})
				start(t, setup{ledger: ledger, Options: leading("second", 1, failover)})
				at(60 * time.Minute)
				*counts = counter.Counts()
			})
		}
		if fmt.Sprint(with) != fmt.Sprint(without) {
			t.Errorf("%v: %v with a watch, %v without", failover, with, without)
		}
	}
}

func TestAWatchIsBegunAgainAndEndsWithTheLastWorker(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		most int // watches
		told int
	}{
		"unsupported": {fmt.Errorf("here: %w", errors.ErrUnsupported), 1, 1},
		"closed":      {store.ErrClosed, 1, 0},
		"breaks":      {errors.New("broken"), 14, 1},
	} {
		bubble(t, name, func(t *testing.T) {
			begun, under := 0, 0
			ledger := watcher{memory.New(memory.Options{}), func(ctx context.Context, _ func(string)) error {
				begun++
				if begun > 3 && test.most > 1 {
					under++
					<-ctx.Done()
					under--
					return ctx.Err()
				}
				return test.err
			}}
			all := &worker{}
			client := newClient(all, setup{ledger: ledger})
			before := bubbled()
			plain := start(t, setup{client: client, Options: leading("plain", 0, 0)})
			at(time.Minute)
			if begun > 0 {
				t.Error("a worker watches that can't use it")
			}
			first := start(t, setup{client: client, Options: leading("first", 0, 20*time.Second)})
			second := start(t, setup{client: client, Options: leading("second", 0, 20*time.Second)})
			at(10 * time.Minute)
			if begun > test.most || test.most > 1 && (begun != 4 || under != 1) {
				t.Errorf("%d watches were begun, and %d are under way", begun, under)
			}
			if told := len(observed[event.WatchFailed](all)); told != test.told {
				t.Errorf("it was told %d times, want %d", told, test.told)
			}
			plain.stop(t)
			first.stop(t)
			second.stop(t)
			synctest.Wait()
			if got := bubbled() - before; got > 0 || under != 0 {
				t.Errorf("%d goroutines and %d watches are left", got, under)
			}
		})
	}
}

func TestAWatchThatNeverEndsKeepsNoWorkerFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		defer close(hang)
		w := start(t, setup{Options: leading("first", 0, 20*time.Second), ledger: watcher{memory.New(memory.Options{}), func(context.Context, func(string)) error {
			<-hang
			return nil
		}}})
		at(time.Minute)
		began := time.Now()
		if err := w.StopLeasing(t.Context()); err != nil || time.Since(began) > time.Second {
			t.Errorf("StopLeasing: %v, after %v", err, time.Since(began))
		}
	})
}

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

func TestManyHintsCostFewSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(memory.Options{})
		start(t, setup{ledger: inner.Handle(), Options: leading("first", 0, 0)})
		drawn := &counting{}
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
		drawn.steps.Store(0)
		at(7 * time.Minute)
		if n := drawn.steps.Load(); n > 200 {
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
