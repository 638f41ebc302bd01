package estimate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/workerlease"
)

// coarse is a ledger whose clock is the Date of HTTP replies: whole seconds, of a largest age.
type coarse struct {
	store.Ledger

	age time.Duration
}

func (c coarse) stamp(s store.Stamp) store.Stamp {
	s.Time, s.Granularity, s.MaxAge, s.Skew = s.Time.Truncate(time.Second), time.Second, c.age, 250*time.Millisecond
	return s
}

func (c coarse) Now(ctx context.Context) (store.Stamp, error) {
	s, err := c.Ledger.Now(ctx)
	return c.stamp(s), err
}

func (c coarse) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, s, err := c.Ledger.Tail(ctx, workerType, limit)
	return records, c.stamp(s), err
}

func (c coarse) Append(ctx context.Context, r store.Record) error {
	err := c.Ledger.Append(ctx, r)
	if err == nil {
		s, _ := c.Ledger.Now(ctx)
		store.Tell(ctx, c.stamp(s))
	}
	return err
}

// whole is a ledger with the clock of S3's and Azure's, which may be a second old, and fresh one with that of Kubernetes'.
func whole(l store.Ledger) store.Ledger { return coarse{l, time.Second} }
func fresh(l store.Ledger) store.Ledger { return coarse{l, 0} }

// Who wins isn't always the same worker, as two may take their turns for one. So all are counted together.
func TestThePlanCountsWhatTheEngineDoesByAClockOfWholeSeconds(t *testing.T) {
	const workers = 3
	for _, c := range []struct{ slot, failover, lead time.Duration }{
		{6 * time.Second, 0, 0},
		{10 * time.Second, 0, 0},
		{15 * time.Second, 0, 0},
		{20 * time.Second, 0, 0},
		{time.Minute, 0, 0},
		{5 * time.Minute, 0, 0},
		{time.Hour, 0, 0},
		{4 * time.Hour, 0, 0},
		{30 * 24 * time.Hour, 0, 0},
		{time.Minute, 10 * time.Second, 0},
		{5 * time.Minute, 20 * time.Second, 0},
		{5 * time.Minute, 150 * time.Second, 0},
		{time.Hour, time.Minute, 30 * time.Second},
		{time.Hour, 2 * time.Minute, 0},
		{24 * time.Hour, 8 * time.Hour, 0},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				warmUp, n := 5, 40
				if c.failover > 0 {
					warmUp, n = 3, 4 // of many parts
				}
				options := workerlease.Options{LeaseInterval: c.slot, FailoverWithin: c.failover, Lead: c.lead}
				planned := Of(Options{Store: S3, Workers: workers, Slot: c.slot, Timing: timingOf(t, options)})
				got := asked(slices.Concat(observed(t, options, workers, whole, warmUp, n)...))
				got[opGet], got[opTrim] = 0, 0
				want := times(sum(planned.rows[0].each, times(planned.rows[1].each, workers-1)), float64(n))
				// Looks at the time are the most that there may be, and few are saved without failover.
				least := want[opNow] - float64(n)
				if c.failover > 0 {
					least = 0
				}
				if got[opNow] < least || got[opNow] > want[opNow] {
					t.Errorf("%v looks at the time in %d slots, planned %v", got[opNow], n, want[opNow])
				}
				if got[opNow] = want[opNow]; got != want {
					t.Errorf("%d workers in %d slots: %+v, planned %+v", workers, n, got, want)
				}
			})
		})
	}
}

// The plan says of slots that are too short that many are never worked: so it is, and not of those that it says nothing of.
func TestSlotsThatAreTooShortForAClockOfWholeSeconds(t *testing.T) {
	for kind, with := range map[string]func(store.Ledger) store.Ledger{S3: whole, AzureBlob: whole, Kubernetes: fresh} {
		for slot := time.Second; slot <= 8*time.Second; slot += time.Second {
			t.Run(fmt.Sprint(kind, ", ", slot), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					// In the shortest slots that are long enough, chance may have a few of 40 pass.
					const n, few = 40, 8
					options := workerlease.Options{LeaseInterval: slot}
					won := asked(slices.Concat(observed(t, options, 3, with, 10, n)...))[opAppend]
					e := Of(Options{Store: kind, Workers: 3, Slot: slot, Timing: timingOf(t, options)})
					const said = "many are never worked"
					text, listed := strings.Contains(e.Text(false), said), strings.Contains(strings.Join(e.Report().Assumptions, " "), said)
					if text != (won < n-few) || listed != text {
						t.Errorf("%v of %d slots are won, and the plan says that many aren't: %v in tables, %v in JSON", won, n, text, listed)
					}
				})
			})
		}
	}
}

func TestThePlanCountsWhatIsKept(t *testing.T) {
	for slot, lasting := range map[time.Duration]int{5 * time.Minute: 1000, time.Hour: 400} {
		t.Run(slot.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				timing := timingOf(t, workerlease.Options{LeaseInterval: slot})
				var handle *memory.Ledger
				var deleted atomic.Int64
				crew(t, workerlease.Options{LeaseInterval: slot}, 1, func(l store.Ledger) store.Ledger {
					handle = l.(*memory.Ledger).Handle()
					return deletions{l, &deleted}
				})
				planned := keeping(Options{Store: S3, Workers: 1, Timing: timing}, slot)
				var fewest, most int
				for i := range lasting {
					time.Sleep(slot)
					synctest.Wait()
					records, _, err := handle.Tail(t.Context(), "export", 100_000)
					must(t, err)
					if i == lasting-1 {
						checkSize(t, records[0], recordBytes)
					}
					if i > lasting*3/4 {
						most = max(most, len(records))
						if fewest == 0 || len(records) < fewest {
							fewest = len(records)
						}
					}
				}
				if float64(fewest) != planned.Records || float64(most) != planned.AtMost {
					t.Errorf("%d to %d records are kept, planned %v to %v", fewest, most, planned.Records, planned.AtMost)
				}
			})
		})
	}
}

// checkSize checks that a record is about as large as planned.
func checkSize(t *testing.T, r store.Record, planned float64) {
	t.Helper()
	body, err := storekit.Encode(r)
	if n := float64(len(body)); err != nil || n < planned*0.8 || n > planned*1.2 {
		t.Errorf("a record has %v bytes, planned %v (%v)", n, planned, err)
	}
}

// poor is a ledger that says how poorly its clock is known.
type poor struct {
	store.Ledger

	floor time.Duration
}

func (p poor) Describe() store.Description { return store.Description{FailoverFloor: p.floor} }

// The plan connects to nothing, so it has a copy of what workers find out from the store.
func TestTheFloorsAreThoseOfWorkers(t *testing.T) {
	const skew = 250 * time.Millisecond // the default of all
	dates := storekit.Dates{Skew: skew}.FailoverFloor()
	for kind, said := range map[string]time.Duration{S3: dates, AzureBlob: dates, Kubernetes: 8 * (400*time.Millisecond + skew)} {
		l := poor{memory.New(memory.Options{}), said}
		o := workerlease.Options{WorkerType: "export", LeaseInterval: 5 * time.Minute, FailoverWithin: Floor(kind) - 100*time.Millisecond}
		_, err := workerlease.StartLeasing(t.Context(), l, o, workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
		if want := fmt.Sprintf("at least %v on this store", Floor(kind)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a worker with less than the floor of %s: %v, want %q", kind, err, want)
		}
	}
}
