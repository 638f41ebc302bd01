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

// crew runs workers of one type and one priority, in a bubble, and returns a counter for
// each of them.
func crew(t *testing.T, o workerlease.Options, n int, with func(store.Ledger) store.Ledger) (counters []*faultstore.Counter) {
	t.Helper()
	inner := memory.New(memory.Options{})
	for i := range n {
		counter := faultstore.NewCounter(with(inner.Handle()))
		counters = append(counters, counter)
		o.WorkerType, o.InstanceID = "export", fmt.Sprint(i)
		// The default clock goes on with the machine's, not with the bubble's.
		client := workerlease.NewClient(counter, workerlease.ClientOptions{Clock: clock.New()})
		w, err := client.StartLeasing(t.Context(), o, workerlease.Callbacks{
			LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) { <-ctx.Done() },
		})
		must(t, err)
		t.Cleanup(func() {
			// Time stands still in a bubble whose test function has returned.
			_ = w.StopLeasing(context.Background())
			<-w.Done()
		})
	}
	return counters
}

// timed and silent are ledgers that report the time along with a tail, and that don't. Like those that bill, they compare nothing
// when they append.
func timed(l store.Ledger) store.Ledger  { return struct{ store.Ledger }{l} }
func silent(l store.Ledger) store.Ledger { return untimed{l} }

// observed runs a crew to the middle of a slot, forgets what it did, and lets it go on
// for n more slots. It returns the calls of each worker.
func observed(t *testing.T, o workerlease.Options, workers int, with func(store.Ledger) store.Ledger, warmUp, n int) (logs [][]faultstore.Entry) {
	t.Helper()
	counters := crew(t, o, workers, with)
	pass := func(d time.Duration) {
		time.Sleep(d)
		synctest.Wait()
	}
	pass(time.Duration(warmUp)*o.LeaseInterval + o.LeaseInterval/2)
	for _, c := range counters {
		c.Reset()
	}
	pass(time.Duration(n) * o.LeaseInterval)
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
	must(t, err)
	return timing
}

func TestThePlanCountsWhatTheEngineDoes(t *testing.T) {
	const workers = 3
	for name, with := range map[string]func(store.Ledger) store.Ledger{"time along with a tail": timed, "no time along with a tail": silent} {
		for _, c := range []struct{ slot, failover, lead time.Duration }{
			{2 * time.Second, 0, 0},
			{3 * time.Second, 0, 0},
			{time.Minute, 0, 0},
			{5 * time.Minute, 0, 0},
			{time.Hour, 0, 0},
			{4 * time.Hour, 0, 0},
			{24 * time.Hour, 0, 0},
			{30 * 24 * time.Hour, 0, 0},
			{6 * time.Second, 2 * time.Second, 0},
			{time.Minute, 2 * time.Second, 0},
			{time.Minute, 500 * time.Millisecond, 0},
			{5 * time.Minute, 20 * time.Second, 0},
			{5 * time.Minute, 150 * time.Second, 0},
			{time.Hour, time.Minute, 30 * time.Second},
			{time.Hour, 2 * time.Minute, 0},
			{time.Hour, 10 * time.Minute, 100 * time.Millisecond},
			{24 * time.Hour, time.Hour, 0},
			{24 * time.Hour, 8 * time.Hour, 0},
		} {
			t.Run(fmt.Sprint(name, ", ", c), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					warmUp, n := 5, 40
					if c.failover > 0 {
						warmUp, n = 3, 4 // of many parts
					}
					schedule := slots.Must(slots.Every(c.slot))
					options := workerlease.Options{LeaseInterval: c.slot, FailoverWithin: c.failover, Lead: c.lead}
					planned := Of(Options{Store: Cosmos, Consistency: Strong, Workers: workers, Slot: c.slot, Timing: timingOf(t, options)})
					winners := 0
					for i, log := range observed(t, options, workers, with, warmUp, n) {
						got, want := asked(log), times(planned.rows[1].each, float64(n))
						won := got[opAppend] > 0
						if won {
							winners++
							want = times(planned.rows[0].each, float64(n))
						}
						if c.failover == 0 {
							checkClaims(t, log, schedule, planned.turns.Lead)
						} else {
							got[opGet], got[opTrim] = 0, 0
							if won {
								checkCuts(t, log, schedule, planned.parts, c.failover)
							}
							// Where a part is shorter than a look at the time lasts, one lasts for
							// several, or for ever if the tail reports the time, which saves the
							// winner a sample, too.
							short := planned.parts.length <= max(planned.turns.Lead, time.Second)
							if (!won && short || won && name == "time along with a tail") && got[opNow] <= want[opNow] {
								got[opNow] = want[opNow]
							}
						}
						if got != want {
							t.Errorf("worker %d in %d slots: %+v, planned %+v", i, n, got, want)
						}
					}
					if winners != 1 {
						t.Errorf("%d workers won slots, want the one that goes first ever since", winners)
					}
				})
			})
		}
	}
}

// checkClaims checks when a worker asked for more than the time: about a lead before a
// boundary.
func checkClaims(t *testing.T, log []faultstore.Entry, schedule slots.Schedule, lead time.Duration) {
	t.Helper()
	for _, e := range log {
		step := lead / 9 // Uncertainty may widen it.
		if before := schedule.Next(e.Began).Start.Sub(e.Began); e.Op != faultstore.OpNow && (before > lead+lead/100 || before < lead-step) {
			t.Errorf("a %s %v before the boundary, planned from %v on, within %v", e.Op, before, lead, step)
		}
	}
}

// checkCuts checks when a winner appended: once before the boundary, and then before
// the end of each part.
func checkCuts(t *testing.T, log []faultstore.Entry, schedule slots.Schedule, c parts, failover time.Duration) {
	t.Helper()
	early := c.timing.ExtendEarly
	log = slices.DeleteFunc(log, func(e faultstore.Entry) bool { return e.Op != faultstore.OpAppend })
	for _, e := range log {
		at := e.Began.Sub(schedule.At(e.Began).Start)
		k := (at + early + c.length/2) / c.length
		// It is early by how uncertain the time may be.
		if due := k*c.length - early; at < due-min(early/4, 150*time.Millisecond+c.length/500) || at > due+10*time.Millisecond {
			if before := schedule.Next(e.Began).Start.Sub(e.Began); before > failover/2+time.Millisecond {
				t.Errorf("an append %v into the slot, planned %v", at, due)
			}
		}
	}
	if n := len(log); n%int(c.n) != 0 || n == 0 {
		t.Errorf("%d appends in whole slots of %v parts", n, c.n)
	}
}

// asked are the operations of a log, without what was deleted.
func asked(log []faultstore.Entry) operations {
	n := map[faultstore.Op]float64{}
	for _, e := range log {
		n[e.Op]++
	}
	return operations{opNow: n[faultstore.OpNow], opTail: n[faultstore.OpTail], opAppend: n[faultstore.OpAppend], opGet: n[faultstore.OpGet], opTrim: n[faultstore.OpTrim]}
}

func TestAShortSlotCostsNoMoreThanPlanned(t *testing.T) {
	for _, slot := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const workers, n = 3, 200
			options := workerlease.Options{LeaseInterval: slot}
			timing := timingOf(t, options)
			got := asked(slices.Concat(observed(t, options, workers, timed, 10, n)...))
			most := times(sum(winner(timing, slot, slot/4), times(loser(timing, slot, slot/4), workers-1)), n)
			if got[opNow] > most[opNow] || got[opTail] > most[opTail] || got[opAppend] > most[opAppend] || got[opAppend] < n {
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
				var deleted atomic.Int64
				counter := crew(t, workerlease.Options{LeaseInterval: slot}, 1, func(l store.Ledger) store.Ledger { return deletions{l, &deleted} })[0]
				// Half of the time is for the records to gather that are kept.
				half := time.Duration(days) * 12 * time.Hour
				time.Sleep(half)
				synctest.Wait()
				counter.Reset()
				deleted.Store(0)
				time.Sleep(half)
				synctest.Wait()
				got := asked(counter.Log())
				got[opDeleted] = float64(deleted.Load())
				// One trim more or less falls into the time that was looked at.
				once := trimming(timing, slot)
				want := times(once, got[opAppend]/float64(timing.TrimEvery))
				for _, c := range []struct {
					what           string
					got, want, tol float64
				}{
					{"gets", got[opGet], want[opGet], once[opGet]},
					{"trims", got[opTrim], want[opTrim], once[opTrim]},
					{"deleted records", got[opDeleted], want[opDeleted], once[opDeleted]},
				} {
					if math.Abs(c.got-c.want) > c.tol || c.got == 0 {
						t.Errorf("%v %s after %v appends, planned %.1f", c.got, c.what, got[opAppend], c.want)
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
				n := 20
				if c.failover > 0 {
					n = 5 // of many parts
				}
				logs := observed(t, options, c.workers, timed, 3, n)
				e := Of(Options{Store: Cosmos, Consistency: Session, Workers: c.workers, Slot: c.slot, Timing: timingOf(t, options)})
				worst := worstSecond(slices.Concat(logs...), e.prices)
				planned := e.peak()
				// Where a turn is longer than a second, chance makes some seconds busier.
				if e.spread() > time.Second && c.failover == 0 {
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
	price := map[faultstore.Op]float64{faultstore.OpNow: p.each[opNow][inUnits], faultstore.OpTail: p.each[opTail][inUnits], faultstore.OpAppend: p.each[opAppend][inUnits]}
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

func TestTheHelpCountsThePartsOfItsExample(t *testing.T) {
	timing := timingOf(t, workerlease.Options{LeaseInterval: 5 * time.Minute, FailoverWithin: 30 * time.Second})
	if got := cut(timing, 5*time.Minute, timing.LeadAfter(5*time.Minute)).n; got != 14 {
		t.Errorf("slots of 5m with a failover within 30s have %v parts, the help says 14", got)
	}
}
