package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// outcomeRegimes: the work of slots fails, and nothing is released, so that records tell of it alone.
var outcomeRegimes = []regime{
	{"work that fails under leases that are kept", func(o *sim.Options, r *rand.Rand) {
		o.Faults.Panicked, o.Length = pick(r, 0, 0.05), 2*time.Hour
		fails(o, r)
	}, eachFailureIsTold, appending(func(r *store.Record) error {
		if r.Kind == store.KindOutcome {
			return fmt.Errorf("%w: no", store.ErrNotStored)
		}
		return nil
	}), "isn't told", true},
	{"work that fails, and much goes wrong", func(o *sim.Options, r *rand.Rand) {
		f := &o.Faults
		f.Restarts, f.Stalls, f.Outages, f.Partitions = pick(r, 0, 20*time.Minute), pick(r, 0, 10*time.Minute), pick(r, 0, 30*time.Minute), pick(r, 0, 30*time.Minute)
		f.Delayed, f.LostReply, f.Late, f.Stale = 0.02, 0.1, 0.1, 0.01
		f.TimerOff, f.SlowObserver = 0.02, 0.005
		f.Skew, f.Failovers, f.Blocked, f.Panicked = 100*time.Millisecond, pick(r, 0, 20*time.Minute), 0.02, 0.05
		o.Length = 2 * time.Hour
		fails(o, r)
	}, noFailureIsToldTwice, appending(func(r *store.Record) error {
		if r.Kind == store.KindOutcome {
			r.Claim = "0123456789abcdef"
		}
		return nil
	}), "takes the term", true},
}

// fails lets the code of a third of the leases fail, and keep them.
func fails(o *sim.Options, r *rand.Rand) {
	kind, parts := r.IntN(4), time.Duration(2+r.IntN(4))
	eachWorker(o, func(n int, w *workerlease.Options) {
		w.Continuous = kind == 1
		if kind == 2 && w.LeaseInterval > 10*time.Second {
			w.FailoverWithin = w.LeaseInterval / parts
		}
		if kind == 3 {
			w.Group = fmt.Sprint("g", n%2)
		}
	})
	x := &failures{leadOn: kind == 1}
	o.Callbacks = x.callbacks
	failuresBySeed.Store(o.Seed, x)
}

// failures are those of one run.
type failures struct {
	leadOn bool // leases go on over several slots, and there are few
	mu     sync.Mutex
	all    map[string]bool // whether the process has lived for half a slot after it, by the error's text
}

var failuresBySeed sync.Map

func (x *failures) callbacks(p *sim.Process) workerlease.Callbacks {
	cb := sim.DefaultCallbacks(p)
	inner := cb.LeaseAllocated
	cb.LeaseAllocated = func(ctx context.Context, l workerlease.Lease) {
		if r := rand.New(rand.NewPCG(uint64(l.Token), uint64(p.Worker))); r.IntN(3) == 0 || x.leadOn {
			go x.fail(ctx, p, l)
		}
		inner(ctx, l)
	}
	return cb
}

func (x *failures) fail(ctx context.Context, p *sim.Process, l workerlease.Lease) {
	part := l.Slot.Length() / 4
	for n := 1; (exporter{process: p}).wait(ctx, part) && l.Valid() && !p.Dead(); n++ {
		text := fmt.Sprintf("failure %d of %v under token %d", n, p, l.Token)
		l.FailedWith(errors.New(text))
		x.note(text, false)
		if sleep(p, 2*part); !p.Dead() {
			x.note(text, true)
		}
		sleep(p, part) // A lease that goes on fails in each slot.
	}
}

func (x *failures) note(text string, lived bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all == nil {
		x.all = map[string]bool{}
	}
	x.all[text] = lived
}

// told is how often each failure is told in the ledger.
func (x *failures) told(r *sim.Result) map[string]int {
	told := map[string]int{}
	for _, records := range r.Records {
		for _, record := range records {
			if o, ok := record.Outcome(); ok {
				told[o.Error]++
			}
		}
	}
	return told
}

// eachFailureIsTold demands one record for each failure, in a world in which nothing keeps a worker from that.
func eachFailureIsTold(o sim.Options, r *sim.Result, sum *tally) (wrong []string) {
	wrong, x := toldOnce(o, r)
	told := x.told(r)
	for text, lived := range x.all {
		if lived && told[text] == 0 {
			wrong = append(wrong, text+" isn't told")
		}
	}
	if len(x.all) < 5 {
		wrong = append(wrong, fmt.Sprintf("only %d leases failed", len(x.all)))
	}
	return wrong
}

// noFailureIsToldTwice, whatever becomes of replies.
func noFailureIsToldTwice(o sim.Options, r *sim.Result, _ *tally) []string {
	wrong, _ := toldOnce(o, r)
	return wrong
}

func toldOnce(o sim.Options, r *sim.Result) (wrong []string, x *failures) {
	v, _ := failuresBySeed.LoadAndDelete(o.Seed)
	x = v.(*failures)
	for text, n := range x.told(r) {
		if n > 1 && strings.HasPrefix(text, "failure ") {
			wrong = append(wrong, fmt.Sprintf("%s is told %d times", text, n))
		}
	}
	return wrong, x
}
