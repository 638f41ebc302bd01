// Package failovers runs workers on a store whose servers fail over, and judges by facts whether two worked at once. A store that
// may lose what it has acknowledged may have that, and then it must be told: by an event, and by what verify finds in the ledger.
package failovers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/verify"
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

// within is how soon another worker takes over from a leader that is gone. No window of one is longer.
const within = 8 * time.Second

// Run has as many worlds fail over, each at some moment, some at a time.
func Run(t *testing.T, start func(t *testing.T) World) {
	t.Helper()
	times, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || times < 1 {
		t.Skip("fails over again and again: see make failovers")
	}
	var sum tally
	t.Run("all", func(t *testing.T) {
		for i := range times {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				sum.add(failover(t, start(t), rand.New(rand.NewPCG(uint64(i), 6))))
			})
		}
	})
	t.Logf("%d failovers: %d overlaps, %d leases of which were lost; work went on after %v at the latest", times, sum.overlaps, sum.lost, sum.longest.Round(100*time.Millisecond))
}

type tally struct {
	mu             sync.Mutex
	overlaps, lost int
	longest        time.Duration
}

func (a *tally) add(overlaps, lost int, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.overlaps, a.lost, a.longest = a.overlaps+overlaps, a.lost+lost, max(a.longest, took)
}

// turn is when somebody worked under a lease, for certain: the first and the last moment at which that was valid.
type turn struct {
	who         string
	token       int64
	first, last time.Time
}

// team are the workers of a type.
type team struct {
	workerType string
	mu         sync.Mutex
	turns      []*turn
	back       []string // who has reported WentBack
}

// work is what a worker does under a lease: it looks at that again and again.
func (m *team) work(who string) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		x := &turn{who: who, token: l.Token}
		for ctx.Err() == nil {
			now := time.Now()
			if !l.Valid() { // If it is valid now, it was before.
				break
			}
			m.mu.Lock()
			if x.first.IsZero() {
				x.first = now
				m.turns = append(m.turns, x)
			}
			x.last = now
			m.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
		<-ctx.Done()
		return nil
	}
}

// renewed reports that somebody works under what was granted since a moment: by a new lease, or by one that was extended.
func (m *team) renewed(from time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.turns {
		if x.first.After(from) || x.last.After(from.Add(within)) {
			return true
		}
	}
	return false
}

func failover(t *testing.T, w World, r *rand.Rand) (overlaps, lost int, took time.Duration) {
	t.Helper()
	every, err := slots.Every(3 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	long, err := slots.Every(40 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	slotted, leading := &team{workerType: "slots"}, &team{workerType: "leader"}
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	for i := range 3 {
		l := w.Open()
		for m, o := range map[*team]workerlease.Options{
			slotted: {Schedule: every, Priority: i},
			leading: {Schedule: long, Priority: i, FailoverWithin: within, Continuous: true, NoFailback: true},
		} {
			who := fmt.Sprint("w", i)
			o.WorkerType, o.InstanceID = m.workerType, who
			c := workerlease.NewClient(l, workerlease.ClientOptions{Observer: event.ObserverFunc(func(e event.Event) {
				if _, is := e.(event.WentBack); is {
					m.mu.Lock()
					m.back = append(m.back, who)
					m.mu.Unlock()
				}
			})})
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
	w.Fail(r)
	failed := time.Now()
	await(t, "work after the failover", func() bool { return slotted.renewed(failed) && leading.renewed(failed) })
	took = time.Since(failed)
	time.Sleep(10 * time.Second)
	for _, m := range []*team{slotted, leading} {
		o, l := m.judge(t, w)
		overlaps, lost = overlaps+o, lost+l
	}
	return overlaps, lost, took
}

// judge looks for turns at the same time, and for what is told of them.
func (m *team) judge(t *testing.T, w World) (overlaps, lost int) {
	t.Helper()
	l := w.Open()
	m.mu.Lock()
	type pair struct{ a, b turn }
	var pairs []pair
	for i, x := range m.turns {
		for _, y := range m.turns[:i] {
			if x.token != y.token && x.first.Before(y.last) && y.first.Before(x.last) {
				pairs = append(pairs, pair{*y, *x})
			}
		}
	}
	m.mu.Unlock()
	for _, p := range pairs {
		text := fmt.Sprintf("%s: %s worked with token %d from %s to %s, and %s with token %d from %s to %s", m.workerType,
			p.a.who, p.a.token, p.a.first.Format("15:04:05.000"), p.a.last.Format("15:04:05.000"), p.b.who, p.b.token, p.b.first.Format("15:04:05.000"), p.b.last.Format("15:04:05.000"))
		t.Log(text)
		if !w.Loses {
			t.Error("two worked at once, on a store that keeps what it has acknowledged")
		}
		await(t, "that the loss is told by an event", func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return strings.Contains(strings.Join(m.back, " "), p.a.who) || strings.Contains(strings.Join(m.back, " "), p.b.who)
		})
		var found *verify.Report
		await(t, "that the overlap is found in the ledger", func() bool {
			found = verified(l, m.workerType)
			return found != nil && names(found, p.a, p.b)
		})
	}
	var found *verify.Report
	await(t, "that the ledger can be read", func() bool {
		found = verified(l, m.workerType)
		return found != nil
	})
	for _, f := range found.Findings {
		switch {
		case f.Code == verify.RecordsLost && w.Loses:
			lost++
		case f.Code == verify.BesideLost && w.Loses:
		case f.Severity == verify.Fault, f.Code == verify.RecordsLost:
			t.Errorf("%s: verify finds %+v", m.workerType, f)
		}
	}
	return len(pairs), lost
}

// names reports that verify has found that these two worked at once.
func names(found *verify.Report, a, b turn) bool {
	for _, f := range found.Findings {
		if f.Code == verify.BesideLost && strings.Contains(f.Text, fmt.Sprintf("%q", a.who)) && strings.Contains(f.Text, fmt.Sprintf("%q", b.who)) {
			return true
		}
	}
	return false
}

// verified is what verify finds in a ledger, or nil while that can't be read.
func verified(l store.Ledger, workerType string) *verify.Report {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	records, _, err := l.Tail(ctx, workerType, 256)
	if err != nil {
		return nil
	}
	stamp, err := l.Now(ctx)
	if err != nil {
		return nil
	}
	v := verify.New(verify.Options{WorkerType: workerType, Now: stamp.Time, Uncertainty: stamp.Skew + time.Second})
	for i := len(records) - 1; i >= 0; i-- {
		v.Add(records[i])
	}
	return v.Report()
}

// Sleep waits up to 3 s.
func Sleep(r *rand.Rand) { time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second)))) }

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}
