package faultstore_test

import (
	"fmt"
	"math"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var rates = faultstore.Rates{
	Latency: time.Second, Slow: 0.1, Failure: 0.1, LostReply: 0.1, BlackHole: 0.1, Throttled: 0.1,
	OwnConflict: 0.1, Late: 0.1, Stale: 0.1, HideNewest: 3, Stamp: 0.1,
}

func TestRandomIsAFunctionOfSeedAndCall(t *testing.T) {
	one, again, other := faultstore.Random(7, rates), faultstore.Random(7, rates), faultstore.Random(8, rates)
	var calls []faultstore.Call
	for n := range int64(200) {
		calls = append(calls, faultstore.Call{Caller: fmt.Sprint(n % 3), Op: faultstore.OpAppend, WorkerType: "job", N: n})
	}
	want := make([]faultstore.Fault, len(calls))
	for i, c := range calls {
		want[i] = one(c)
	}
	got := make([]faultstore.Fault, len(calls))
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			c := calls[len(calls)-1-i]
			c.At, c.Seq = time.Now(), int64(i) // What a run may change has no part in the draw.
			got[len(calls)-1-i] = again(c)
		})
	}
	wg.Wait()
	differs := 0
	for i := range calls {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("call %d in another order: %+v, want %+v", i, got[i], want[i])
		}
		if !reflect.DeepEqual(other(calls[i]), want[i]) {
			differs++
		}
	}
	if differs < 190 {
		t.Errorf("another seed differs in %d of 200 calls, want nearly all", differs)
	}
}

func TestRandomKeepsTheRates(t *testing.T) {
	const n = 20_000
	for op, want := range map[faultstore.Op]map[string]float64{
		faultstore.OpAppend: {
			"none": 0.3, "slow": 0.1, "failure": 0.1, "lost reply": 0.1, "black hole": 0.1, "throttled": 0.1,
			"own conflict": 0.1, "late": 0.1,
		},
		faultstore.OpTail: {
			"none": 0.3, "slow": 0.1, "failure": 0.1, "lost reply": 0.1, "black hole": 0.1, "throttled": 0.1,
			"stale": 0.1, "stamp": 0.1,
		},
		faultstore.OpTrim: {"none": 0.5, "slow": 0.1, "failure": 0.1, "lost reply": 0.1, "black hole": 0.1, "throttled": 0.1},
	} {
		plan := faultstore.Random(1, rates)
		got := map[string]float64{}
		for i := range int64(n) {
			got[classify(plan(faultstore.Call{Op: op, WorkerType: "job", N: i}))]++
		}
		for name := range got {
			if _, ok := want[name]; !ok {
				t.Errorf("%s: %v calls with %q, want none", op, got[name], name)
			}
		}
		for name, rate := range want {
			if share := got[name] / n; math.Abs(share-rate) > 0.012 {
				t.Errorf("%s: share of %q = %.3f, want %.3f", op, name, share, rate)
			}
		}
	}
}

func classify(f faultstore.Fault) string {
	switch {
	case f.Effect == faultstore.Late:
		if f.LateBy < time.Millisecond || f.LateBy > 24*time.Hour {
			return fmt.Sprint("late by ", f.LateBy)
		}
		return "late"
	case f.Block:
		return "black hole"
	case reflect.DeepEqual(f.Err, faultstore.OwnConflict().Err):
		return "own conflict"
	case f.Err == faultstore.ErrInjected:
		return "lost reply"
	case f.Err != nil:
		return "throttled"
	case f.Effect == faultstore.Dropped:
		return "failure"
	case f.HideNewest > 0 && f.HideNewest <= 3:
		return "stale"
	case f.Shift != 0:
		return "stamp"
	case f.Before+f.After > 2*time.Second:
		return "slow"
	case f.Before > time.Second || f.After > time.Second:
		return "slow"
	default:
		return "none"
	}
}

func TestZeroRatesDrawNoFault(t *testing.T) {
	plan := faultstore.Random(1, faultstore.Rates{})
	for n := range int64(1000) {
		if f := plan(faultstore.Call{Op: faultstore.OpAppend, N: n}); !reflect.DeepEqual(f, faultstore.Fault{}) {
			t.Fatalf("Random(1, Rates{}) = %+v, want no fault", f)
		}
	}
}

func TestContendersCountEachWinOnceWhateverTheyAreTold(t *testing.T) {
	m := memory.New(memory.Options{})
	const rounds, callers = 200, 3
	wins := make([][]int64, callers)
	draw := faultstore.Random(3, faultstore.Rates{Failure: 0.1, LostReply: 0.2, OwnConflict: 0.2})
	struck := make([]kinds, callers)
	var wg sync.WaitGroup
	for i := range callers {
		l := faultstore.New(m.Handle(), faultstore.Options{
			Caller: fmt.Sprint("w", i),
			Plan: func(c faultstore.Call) faultstore.Fault {
				if c.Op != faultstore.OpAppend {
					return faultstore.Fault{}
				}
				return draw(c)
			},
		})
		wg.Go(func() {
			won, err := storetest.Contend(t.Context(), l, "job", rounds, 4, fmt.Sprint("w", i))
			if err != nil {
				t.Errorf("Contend() = %v, want nil", err)
			}
			wins[i], struck[i] = won, l.Struck()
			if err := l.Close(t.Context()); err != nil {
				t.Errorf("Close() = %v, want nil", err)
			}
		})
	}
	wg.Wait()
	storetest.CheckWins(t, rounds, wins...)
	total := kinds{}
	for _, s := range struck {
		for k, n := range s {
			total[k] += n
		}
	}
	if total[faultstore.KindLostReply] == 0 || total[faultstore.KindOwnConflict] == 0 {
		t.Errorf("Struck() = %v, want lost replies and own conflicts", total)
	}
}
