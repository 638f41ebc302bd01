// Package failovers runs workers on a store whose servers fail over, and judges by facts whether two worked at once. On a store that
// may lose what it has acknowledged they may. Then an event must report the loss, and verify must find the overlap in the ledger.
package failovers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// variable is the environment variable that says how many failovers each kind of store goes through: make failovers TIMES=24.
const variable = "SLOTLEASE_FAILOVERS"

// World is a store with its servers, for one failover.
type World struct {
	// Open opens a handle for a worker. The ledgers are there already.
	Open func() store.Ledger
	// Fail has the server that takes writes die, or lose its role, and another take over.
	Fail func(r *rand.Rand)
	// Loses says that records may be lost, by the documentation.
	Loses bool
}

// patience is how long workers may take to go on after a failover, and to record what was lost: a limit for what hangs, not a bound
// that is judged.
const patience = 2 * time.Minute

// within is how soon another worker takes over from a leader that is gone. No window of a leader is longer.
const within = 8 * time.Second

// Run has as many worlds fail over as make failovers was asked for, each at a random moment, several at once.
func Run(t *testing.T, start func(t *testing.T) World) {
	t.Helper()
	text, asked := os.LookupEnv(variable)
	if !asked {
		t.Skip("fails over again and again: see make failovers")
	}
	times, err := count(text)
	if err != nil {
		t.Fatal(err)
	}
	var sum tally
	t.Run("all", func(t *testing.T) {
		for i := range times {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				v, took := failover(t, start(t), rand.New(rand.NewPCG(uint64(i), 6)))
				sum.add(v, took)
			})
		}
	})
	t.Log(&sum)
	if err := sum.complete(times); err != nil {
		t.Error(err)
	}
}

// count reads how many failovers are asked for.
func count(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s=%q (TIMES of make failovers): want a number from 1 on", variable, text)
	}
	return n, nil
}

// tally sums up the failovers that ran to their end.
type tally struct {
	mu                  sync.Mutex
	ran, overlaps, lost int
	longest             time.Duration
}

func (a *tally) add(v verdict, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ran, a.overlaps, a.lost, a.longest = a.ran+1, a.overlaps+v.overlaps, a.lost+v.lost, max(a.longest, took)
}

func (a *tally) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprintf("failovers: %d; overlaps: %d; lost records that the ledger names: %d; longest until work went on: %v",
		a.ran, a.overlaps, a.lost, a.longest.Round(100*time.Millisecond))
}

// complete reports an error unless all failovers ran: one that was skipped has shown nothing.
func (a *tally) complete(times int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ran != times {
		return fmt.Errorf("%d failovers ran to their end, want %d", a.ran, times)
	}
	return nil
}

// failover has workers of two types work while a world fails over.
func failover(t *testing.T, w World, r *rand.Rand) (all verdict, took time.Duration) {
	t.Helper()
	slotted, leading := &team{workerType: "slots"}, &team{workerType: "leader"}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	for i := range 3 {
		l := w.Open()
		for m, o := range map[*team]workerlease.Options{
			slotted: {Schedule: every(t, 3*time.Second), Priority: i},
			leading: {Schedule: every(t, 40*time.Second), Priority: i, FailoverWithin: within, Continuous: true, NoFailback: true},
		} {
			who := fmt.Sprint("w", i)
			o.WorkerType, o.InstanceID = m.workerType, who
			c := workerlease.NewClient(l, workerlease.ClientOptions{Observer: m.observer(who)})
			ended.Go(func() {
				if err := c.Run(ctx, o, m.work(who)); err != nil {
					t.Errorf("%s of %s: Run() = %v, want nil", who, m.workerType, err)
				}
			})
		}
	}
	begun := time.Now()
	await(t, "work before the failover", func() bool { return slotted.renewed(begun) && leading.renewed(begun) })
	time.Sleep(time.Duration(r.Int64N(int64(4 * time.Second))))
	failing := time.Now()
	w.Fail(r)
	failed := time.Now()
	await(t, "work after the failover", func() bool { return slotted.renewed(failed) && leading.renewed(failed) })
	took = time.Since(failed)
	time.Sleep(10 * time.Second)
	for _, m := range []*team{slotted, leading} {
		v := m.judged(w.Open(), failing, w.Loses)
		for _, complaint := range append(v.wrong, v.untold...) {
			t.Errorf("%s: %s", m.workerType, complaint)
		}
		all.overlaps, all.lost = all.overlaps+v.overlaps, all.lost+v.lost
	}
	return all, took
}

func every(t *testing.T, d time.Duration) slots.Schedule {
	t.Helper()
	s, err := slots.Every(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Sleep waits up to 3 s.
func Sleep(r *rand.Rand) { time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second)))) }

var await = suites.Eventually
