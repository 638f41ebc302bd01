package sim_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// orderRegimes: operators pause, prefer, drain and ask for releases. The world checks that no claim lands in a
// pause, that orders are repeated until they end, that leases end by orders which are about them, that a preferred
// worker leads, and that no slot is lost otherwise.
var orderRegimes = []regime{
	{"operators", func(o *sim.Options, r *rand.Rand) {
		ordered(o, r)
	}, nothingMore, deaf, "lands in a pause", false},
	{"operators, and much goes wrong", func(o *sim.Options, r *rand.Rand) {
		ordered(o, r)
		f := &o.Faults
		f.Restarts, f.Stalls, f.Outages, f.Partitions = pick(r, 0, 20*time.Minute), pick(r, 0, 10*time.Minute), pick(r, 0, 30*time.Minute), pick(r, 0, 30*time.Minute)
		f.Delayed, f.LostReply, f.Late, f.TimerOff, f.SlowObserver, f.OwnConflict, f.Stale = 0.02, 0.1, 0.1, 0.02, 0.005, 0.1, pick(r, 0, 0.1)
		f.Skew, f.Failovers, f.Blocked, f.Panicked = 100*time.Millisecond, pick(r, 0, 20*time.Minute), 0.02, 0.02
	}, nothingMore, deaf, "lands in a pause", false},
}

// ordered draws how often operators give orders, and how workers lead.
func ordered(o *sim.Options, r *rand.Rand) {
	interval := o.Worker(0).LeaseInterval
	o.Orders = pick(r, 2*interval, 6*interval, 15*interval)
	o.Hints = r.IntN(2) == 0
	kind, parts, stays, joins := r.IntN(6), time.Duration(2+r.IntN(4)), r.IntN(2) == 0, r.IntN(3) == 0
	if kind > 3 {
		o.Task = sim.DefaultTask
	}
	eachWorker(o, func(n int, w *workerlease.Options) {
		w.JoinMidSlot = joins
		if kind == 0 && stays && n < 4 {
			w.Group = "g"
		}
		if kind%2 == 1 && w.LeaseInterval > 10*time.Second {
			w.FailoverWithin = w.LeaseInterval / parts
		}
		switch {
		case kind > 3:
			w.Job = &workerlease.Job{MaxAttempts: 3}
		case kind > 1:
			w.Continuous, w.NoFailback = true, stays
		}
	})
}

// deaf workers read nothing of orders.
func deaf(o *sim.Options) {
	inner := o.Client
	if inner == nil {
		inner = workerlease.NewClient
	}
	o.Client = func(l store.Ledger, c workerlease.ClientOptions) *workerlease.Client {
		return inner(unordered{l}, c)
	}
}

// unordered is a ledger that shows no orders, and keeps them.
type unordered struct{ store.Ledger }

func (u unordered) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, s, err := u.Ledger.Tail(ctx, workerType, limit)
	for i := range records {
		records[i].Orders = ""
	}
	return records, s, err
}

func (u unordered) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	r, err := u.Ledger.Get(ctx, workerType, seq)
	r.Orders = ""
	return r, err
}

// Operators give orders while workers lead in all ways, and nothing breaks: SLOTLEASE_ORDER_SEEDS runs of six
// hours, of each kind.
func TestOperatorsBreakNoPromise(t *testing.T) {
	skipUnderRace(t)
	seeds, err := strconv.ParseInt(cmp.Or(os.Getenv("SLOTLEASE_ORDER_SEEDS"), "3"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var sum sim.Demands
	orders := 0
	t.Run("seeds", func(t *testing.T) {
		for _, g := range orderRegimes {
			for seed := range seeds {
				t.Run(fmt.Sprint(g.name, " ", seed), func(t *testing.T) {
					t.Parallel()
					r := sim.Run(t, drawn(g, 7000+seed))
					r.Check(t)
					mu.Lock()
					defer mu.Unlock()
					sum.Add(r.Demands)
					for _, x := range r.Records["quiet"] {
						if x.Kind == store.KindOrder {
							orders++
						}
					}
				})
			}
		}
	})
	if sum.Preferred == 0 || sum.Boundaries == 0 || orders == 0 {
		t.Errorf("%d orders were given, a preferred worker had to have %d slots, and some worker %d: nothing was tested", orders, sum.Preferred, sum.Boundaries)
	}
	t.Logf("%d orders in the last records of %d runs\n%v", orders, 2*seeds, sum)
}
