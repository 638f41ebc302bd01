package estimate

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// untimed is a ledger that gives no time with a tail, as MongoDB's.
type untimed struct{ store.Ledger }

func (u untimed) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, _, err := u.Ledger.Tail(ctx, workerType, limit)
	return records, store.Stamp{}, err
}

// deletions is a ledger that counts what its trims delete.
type deletions struct {
	store.Ledger

	n *atomic.Int64
}

func (d deletions) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	n, err := d.Ledger.Trim(ctx, workerType, before)
	d.n.Add(int64(n))
	return n, err
}

// crew runs workers of one type and one priority, in a bubble, and returns a
// counter for each of them, and the number of records that trims deleted.
func crew(t *testing.T, o workerlease.Options, n int, with func(store.Ledger) store.Ledger) (counters []*faultstore.Counter, deleted *atomic.Int64) {
	t.Helper()
	inner := memory.New(memory.Options{})
	deleted = &atomic.Int64{}
	for i := range n {
		counter := faultstore.NewCounter(deletions{with(inner.Handle()), deleted})
		counters = append(counters, counter)
		o.WorkerType, o.InstanceID = "export", fmt.Sprint(i)
		// The default clock goes on with the machine's, not with the bubble's.
		client := workerlease.NewClient(counter, workerlease.ClientOptions{Clock: clock.New()})
		w, err := client.StartLeasing(t.Context(), o, workerlease.Callbacks{
			LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) { <-ctx.Done() },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// Time stands still in a bubble whose test function has returned.
			_ = w.StopLeasing(context.Background())
			<-w.Done()
		})
	}
	return counters, deleted
}

// observed forgets what workers did, to the middle of a slot, and lets them go on for n
// more. It returns the calls of each.
func observed(counters []*faultstore.Counter, slot time.Duration, warmUp, n int) (logs [][]faultstore.Entry) {
	time.Sleep(time.Duration(warmUp)*slot + slot/2)
	synctest.Wait()
	for _, c := range counters {
		c.Reset()
	}
	time.Sleep(time.Duration(n) * slot)
	synctest.Wait()
	for _, c := range counters {
		logs = append(logs, c.Log())
	}
	return logs
}

// timingOf is the timing of workers with these options.
func timingOf(t testing.TB, o workerlease.Options) workerlease.Timing {
	t.Helper()
	o.WorkerType = "export"
	timing, err := o.Timing()
	if err != nil {
		t.Fatal(err)
	}
	return timing
}

func TestThePlanCountsWhatTheEngineDoes(t *testing.T) {
	timed := func(l store.Ledger) store.Ledger { return l }
	silent := func(l store.Ledger) store.Ledger { return untimed{l} }
	for name, with := range map[string]func(store.Ledger) store.Ledger{"time along with a tail": timed, "no time along with a tail": silent} {
		for _, slot := range []time.Duration{2 * time.Second, 3 * time.Second, time.Minute, 5 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour, 30 * 24 * time.Hour} {
			t.Run(fmt.Sprint(name, ", ", slot), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const workers, warmUp, n = 3, 5, 40
					schedule := slots.Must(slots.Every(slot))
					planned := Of(Options{Store: Cosmos, Consistency: Strong, Workers: workers, Slot: slot, Timing: timingOf(t, workerlease.Options{LeaseInterval: slot})})
					counters, _ := crew(t, workerlease.Options{LeaseInterval: slot}, workers, with)
					logs := observed(counters, slot, warmUp, n)
					for i, c := range counters {
						got := c.Counts()
						want := planned.loser.times(n)
						if appends := got[faultstore.OpAppend]; appends > 0 {
							// The one that won, and goes first ever since.
							want = planned.winner.times(n)
						}
						if g := asked(got); g != want {
							t.Errorf("worker %d in %d slots: %+v, planned %+v", i, n, g, want)
						}
					}
					for _, e := range slices.Concat(logs...) {
						// Uncertainty may widen the step.
						lead, step := planned.turns.Lead, planned.turns.Lead/9
						if before := schedule.Next(e.Began).Start.Sub(e.Began); e.Op != faultstore.OpNow && (before > lead+lead/100 || before < lead-step) {
							t.Errorf("a %s %v before the boundary, planned from %v on, within %v", e.Op, before, lead, step)
						}
					}
				})
			})
		}
	}
}

// asked are the counts of a counter, without what was deleted.
func asked(counts map[faultstore.Op]int) operations {
	n := func(op faultstore.Op) float64 { return float64(counts[op]) }
	return operations{
		Now: n(faultstore.OpNow), Tail: n(faultstore.OpTail), Append: n(faultstore.OpAppend),
		Get: n(faultstore.OpGet), Trim: n(faultstore.OpTrim),
	}
}

func TestAShortSlotCostsNoMoreThanPlanned(t *testing.T) {
	for _, slot := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const workers, n = 3, 200
			timing := timingOf(t, workerlease.Options{LeaseInterval: slot})
			counters, _ := crew(t, workerlease.Options{LeaseInterval: slot}, workers, func(l store.Ledger) store.Ledger { return l })
			sum := map[faultstore.Op]int{}
			for _, e := range slices.Concat(observed(counters, slot, 10, n)...) {
				sum[e.Op]++
			}
			got, most := asked(sum), winner(timing, slot, slot/4).plus(loser(timing, slot, slot/4).times(workers-1)).times(n)
			if got.Now > most.Now || got.Tail > most.Tail || got.Append > most.Append || got.Append < n {
				t.Errorf("%d slots of %v: %+v, planned at most %+v", n, slot, got, most)
			}
		})
	}
}

func TestThePlanCountsWhatTrimmingTakes(t *testing.T) {
	for slot, days := range map[time.Duration]int{time.Minute: 4, 5 * time.Minute: 6, time.Hour: 60, 24 * time.Hour: 600} {
		t.Run(slot.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				timing := timingOf(t, workerlease.Options{LeaseInterval: slot})
				counters, deleted := crew(t, workerlease.Options{LeaseInterval: slot}, 1, func(l store.Ledger) store.Ledger { return l })
				// Half of the time is for the records to gather that are kept.
				half := time.Duration(days) * 12 * time.Hour
				time.Sleep(half)
				synctest.Wait()
				counters[0].Reset()
				deleted.Store(0)
				time.Sleep(half)
				synctest.Wait()
				got := asked(counters[0].Counts())
				got.Deleted = float64(deleted.Load())
				want := trimming(timing, slot).times(got.Append / float64(timing.TrimEvery))
				// One trim more or less falls into the time that was looked at.
				once := trimming(timing, slot)
				for _, c := range []struct {
					what           string
					got, want, tol float64
				}{
					{"gets", got.Get, want.Get, once.Get},
					{"trims", got.Trim, want.Trim, once.Trim},
					{"deleted records", got.Deleted, want.Deleted, once.Deleted},
				} {
					if math.Abs(c.got-c.want) > c.tol || c.got == 0 {
						t.Errorf("%v %s after %v appends, planned %.1f", c.got, c.what, got.Append, c.want)
					}
				}
			})
		})
	}
}

func TestNoSecondCostsMoreThanThePlannedPeak(t *testing.T) {
	for _, c := range []struct {
		workers                    int
		slot, lead, step, failover time.Duration
	}{
		{1, time.Minute, 0, 0, 0},
		{40, 5 * time.Minute, 0, 0, 0},
		{40, 3 * time.Second, 0, 0, 0},
		{40, 5 * time.Minute, time.Minute, 0, 0},
		{40, 5 * time.Minute, 20 * time.Second, 100 * time.Millisecond, 0},
		{12, 250 * time.Millisecond, 0, 0, 0},
		{20, 5 * time.Minute, 0, 0, 30 * time.Second},
		{20, time.Minute, 0, 0, 4 * time.Second},
		{20, 10 * time.Second, 0, 0, 500 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := workerlease.Options{LeaseInterval: c.slot, Lead: c.lead, Step: c.step, FailoverWithin: c.failover}
				counters, _ := crew(t, options, c.workers, func(l store.Ledger) store.Ledger { return l })
				n := 20
				if c.failover > 0 {
					n = 5 // of many parts
				}
				logs := observed(counters, c.slot, 3, n)
				e := Of(Options{Store: Cosmos, Consistency: Session, Workers: c.workers, Slot: c.slot, Timing: timingOf(t, options)})
				worst := worstSecond(slices.Concat(logs...), e.prices)
				planned := e.peak()
				// Where a turn is longer than a second, chance makes some seconds busier.
				if e.turns.Step*3/4 > time.Second && c.failover == 0 {
					planned *= 2.5
				}
				if worst > planned+0.01 || worst < planned/4 {
					t.Errorf("the worst second costs %.1f RU, planned %.1f", worst, planned)
				}
			})
		})
	}
}

// worstSecond is what the most expensive second of a log costs, without trimming.
func worstSecond(log []faultstore.Entry, p prices) float64 {
	price := map[faultstore.Op]float64{faultstore.OpNow: p.now.Units, faultstore.OpTail: p.tail.Units, faultstore.OpAppend: p.append.Units}
	slices.SortFunc(log, func(a, b faultstore.Entry) int { return a.Began.Compare(b.Began) })
	worst, sum, first := 0.0, 0.0, 0
	for _, e := range log {
		sum += price[e.Op]
		for e.Began.Sub(log[first].Began) >= time.Second {
			sum -= price[log[first].Op]
			first++
		}
		worst = max(worst, sum)
	}
	return worst
}
