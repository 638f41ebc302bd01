package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// spied is a ledger whose roster's writes are counted. Its operations on the roster may fail, or take long.
type spied struct {
	*memory.Ledger
	mu      sync.Mutex
	written map[string][]time.Duration // by InstanceID
	fails   error
	hangs   bool
	dead    bool // the process has died: nothing reaches the store
}

func spy(l *memory.Ledger) *spied {
	return &spied{Ledger: l.Handle(), written: map[string][]time.Duration{}}
}

// meet does what is planned for an operation on the roster.
func (s *spied) meet(ctx context.Context) error {
	s.mu.Lock()
	fails, hangs := s.fails, s.hangs
	if s.dead {
		fails = errDead
	}
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return fails
}

var errDead = errors.New("the process has died")

func (s *spied) Attend(ctx context.Context, presences []store.Presence) error {
	if err := s.meet(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	for _, p := range presences {
		s.written[p.InstanceID] = append(s.written[p.InstanceID], time.Since(t0))
	}
	s.mu.Unlock()
	return s.Ledger.Attend(ctx, presences)
}

func (s *spied) Leave(ctx context.Context, workerType string, ids []string) error {
	if err := s.meet(ctx); err != nil {
		return err
	}
	return s.Ledger.Leave(ctx, workerType, ids)
}

func (s *spied) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	if err := s.meet(ctx); err != nil {
		return nil, err
	}
	return s.Ledger.Presences(ctx, workerType)
}

func (s *spied) dies() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errDead
	}
	return nil
}

func (s *spied) Append(ctx context.Context, r store.Record) error {
	if err := s.dies(); err != nil {
		return err
	}
	return s.Ledger.Append(ctx, r)
}

func (s *spied) AppendAfter(ctx context.Context, r, prev store.Record) error {
	if err := s.dies(); err != nil {
		return err
	}
	return s.Ledger.AppendAfter(ctx, r, prev)
}

func (s *spied) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func present(t *testing.T, l store.Roster) []store.Presence {
	t.Helper()
	all, err := l.Presences(context.Background(), "")
	must(t, err)
	return all
}

// ofInstance is the presence of a worker; the zero one if there is none.
func ofInstance(all []store.Presence, instance string) store.Presence {
	for _, p := range all {
		if p.InstanceID == instance {
			return p
		}
	}
	return store.Presence{}
}

func TestWorkersSayWhatTheyDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		spied := spy(ledger)
		o, p := named("a", 0), named("b", 1)
		o.Labels = map[string]string{"region": "eu"}
		o.FailoverWithin, p.FailoverWithin = 20*time.Second, 20*time.Second
		p.Eligible = (&workerlease.Score{Of: func(context.Context) (float64, error) { return 0.95, nil }}).Eligible
		a := start(t, setup{Options: o, ledger: spied, roster: true})
		b := start(t, setup{Options: p, ledger: spied, roster: true})
		at(30 * time.Second)
		for _, p := range present(t, ledger) {
			if p.Phase != store.PhaseCandidate || p.Missed != "" || since(p.Since) > time.Second || p.Client == "" || p.Schedule == "" || p.Host == "" || p.PID == 0 || p.Version == "" {
				t.Errorf("at first %+v", p)
			}
		}
		at(5*time.Minute + 30*time.Second)
		all := present(t, ledger)
		if p := ofInstance(all, "a"); p.Phase != store.PhaseHolder || p.Labels["region"] != "eu" || p.Priority != 0 || p.Effective != 0 || p.Score != nil {
			t.Errorf("the holder is %+v", p)
		}
		if p := ofInstance(all, "b"); p.Phase != store.PhaseStandby || p.Missed != "a has it, with priority 0" || p.Priority != 1 || p.Score == nil || *p.Score != 0.95 {
			t.Errorf("the standby is %+v", p)
		} else if since(p.MissedFrom) != 5*time.Minute || since(p.MissedUntil) != 10*time.Minute {
			t.Errorf("the standby says that of the slot from %v to %v, want of the one from 5m to 10m", since(p.MissedFrom), since(p.MissedUntil))
		}
		at(65 * time.Minute)
		a.stop(t)
		if all := present(t, ledger); len(all) != 1 || all[0].InstanceID != "b" {
			t.Errorf("when a has stopped, the roster has %+v", all)
		}
		b.stop(t)
		if all := present(t, ledger); len(all) != 0 {
			t.Errorf("when all have stopped, the roster has %+v", all)
		}
		for name, times := range spied.written {
			// One at the start, one for each slot, and another when the first lease had begun, or was lost.
			if n := len(times); n < 12 || n > 16 {
				t.Errorf("%s was written %d times in 13 slots: %v", name, n, times)
			}
			for i := 1; i < len(times); i++ {
				if times[i]-times[i-1] < 10*time.Second {
					t.Errorf("%s was written at %v and %v", name, times[i-1], times[i])
				}
			}
		}
	})
}

// Neither delays a roster that fails any lease, nor one that hangs.
func TestNoLeaseDependsOnTheRoster(t *testing.T) {
	allocations := func(t *testing.T, roster bool, prepare func(*spied)) (times []time.Duration) {
		ledger := spy(memory.New(memory.Options{}))
		prepare(ledger)
		o := slotted("a", 0, time.Minute, 0)
		a := start(t, setup{Options: o, ledger: ledger, roster: roster})
		at(10*time.Minute + 30*time.Second)
		began := time.Now()
		must(t, a.StopLeasing(t.Context()))
		if took := time.Since(began); took > time.Second {
			t.Errorf("stopping took %v", took)
		}
		for _, u := range a.history() {
			times = append(times, u.allocated)
		}
		if n := len(observed[event.RosterFailed](a)); roster && n != 1 || !roster && n != 0 {
			t.Errorf("it was told %d times that the roster fails", n)
		}
		return times
	}
	var want []time.Duration
	bubble(t, "without", func(t *testing.T) { want = allocations(t, false, func(*spied) {}) })
	for name, prepare := range map[string]func(*spied){
		"fails": func(s *spied) { s.fails = store.ErrDenied },
		"hangs": func(s *spied) { s.hangs = true },
	} {
		bubble(t, name, func(t *testing.T) {
			same := func(a, b time.Duration) bool { return (a - b).Abs() < 2*time.Millisecond } // Places in a turn are random.
			if got := allocations(t, true, prepare); !slices.EqualFunc(got, want, same) {
				t.Errorf("allocated at %v, without a roster at %v", got, want)
			}
		})
	}
}

func TestARosterNeedsALedgerThatKeepsOne(t *testing.T) {
	none := struct{ store.Ledger }{memory.New(memory.Options{})}
	for name, test := range map[string]struct {
		ledger store.Ledger
		roster bool
		o      workerlease.Options
		want   string
	}{
		"ledger without":         {none, true, named("a", 0), "ClientOptions.Roster: is set: the ledger keeps no roster"},
		"policy without roster":  {memory.New(memory.Options{}), false, workerlease.Options{WorkerType: "job", Policy: workerlease.FewestLeases()}, "Policy: is set without ClientOptions.Roster"},
		"spread without roster":  {memory.New(memory.Options{}), false, workerlease.Options{WorkerType: "job", TieBreak: priority.Spread}, "TieBreak: is set without ClientOptions.Roster"},
		"label without a name":   {memory.New(memory.Options{}), false, workerlease.Options{WorkerType: "job", Labels: map[string]string{"": "x"}}, "its name is empty"},
		"label that is too long": {memory.New(memory.Options{}), false, workerlease.Options{WorkerType: "job", Labels: map[string]string{"x": strings.Repeat("y", 257)}}, "257 bytes, at most 256 allowed"},
	} {
		_, err := workerlease.NewClient(test.ledger, workerlease.ClientOptions{Roster: test.roster}).StartLeasing(t.Context(), test.o, workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
		if !errors.Is(err, workerlease.ErrOptions) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if _, err := workerlease.NewClient(none, workerlease.ClientOptions{}).Candidates(t.Context(), "job"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Candidates: %v, want that it is not supported", err)
	}
}

func TestCandidatesShowWhoHoldsAndWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		dies := spy(ledger)
		for i, l := range []store.Ledger{dies, ledger.Handle()} {
			o := named(string(rune('a'+i)), i)
			o.LeaseInterval = time.Minute
			start(t, setup{Options: o, ledger: l, roster: true})
		}
		show := func() (text string) {
			list, err := workerlease.NewClient(ledger.Handle(), workerlease.ClientOptions{}).Candidates(t.Context(), "job")
			must(t, err)
			for _, c := range list {
				text += fmt.Sprintf("%s present=%v holds=%v\n", c.InstanceID, c.Present, c.Holds)
			}
			return text
		}
		for _, each := range []struct {
			at   time.Duration
			dies bool
			want string
		}{
			{30 * time.Second, false, "a present=true holds=false\nb present=true holds=false\n"},
			{90 * time.Second, true, "a present=true holds=true\nb present=true holds=false\n"},
			{210 * time.Second, false, "a present=false holds=false\nb present=true holds=true\n"},
			{25 * time.Hour, false, "b present=true holds=true\n"},
		} {
			at(each.at)
			if got := show(); got != each.want {
				t.Errorf("at %v:\n%swant\n%s", each.at, got, each.want)
			}
			dies.set(func() { dies.dead = dies.dead || each.dies })
		}
	})
}

// region are options of a worker that prefers to be in a region.
func region(name, where string, policy workerlease.Policy) workerlease.Options {
	o := named(name, 1)
	o.LeaseInterval, o.Policy, o.Labels = time.Minute, policy, map[string]string{"region": where, "version": where}
	return o
}

func TestAPolicyDecidesWhoGoesFirst(t *testing.T) {
	for name, test := range map[string]struct {
		policy        workerlease.Policy
		first, second string // labels
	}{
		"region":  {workerlease.PreferLabel("region", "eu"), "eu", "us"},
		"version": {workerlease.OldestVersion("version"), "v1.9.3", "v1.10.0"},
	} {
		bubble(t, name, func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			dies := spy(ledger)
			b := start(t, setup{Options: region("b", test.second, test.policy), ledger: ledger.Handle(), roster: true})
			at(61 * time.Second) // b holds the first slot.
			a := start(t, setup{Options: region("a", test.first, test.policy), ledger: dies, roster: true})
			at(10*time.Minute + 30*time.Second)
			if got, want := b.starts(), []time.Duration{time.Minute}; !slices.Equal(got, want) {
				t.Errorf("b had %v, want %v", got, want)
			}
			if n := len(a.starts()); n != 9 {
				t.Errorf("a had %d slots, want all 9 since it is there", n)
			}
			wantPriority := 2
			if s := b.Status(); s.Effective != wantPriority || len(observed[event.Lost](b)) == 0 || observed[event.Lost](b)[0].Inversion {
				t.Errorf("b claims by %d, want %d; events %+v", s.Effective, wantPriority, observed[event.Lost](b))
			}
			dies.set(func() { dies.dead = true })
			at(15*time.Minute + 30*time.Second)
			if got := b.starts(); len(got) != 6 {
				t.Errorf("after a's death b had %v, want all slots from the 11th minute on", got)
			}
		})
	}
}

func TestAPolicyThatPanicsOrIsOutOfBoundsKeepsNobodyFromClaiming(t *testing.T) {
	for name, policy := range map[string]workerlease.Policy{
		"panics": func(store.Presence, []store.Presence) (int, string) { panic("no idea") },
		"high":   func(store.Presence, []store.Presence) (int, string) { return -5, "above all" },
		"low":    func(store.Presence, []store.Presence) (int, string) { return 1 << 30, strings.Repeat("\x00x", 5000) },
	} {
		bubble(t, name, func(t *testing.T) {
			a := start(t, setup{Options: region("a", "eu", policy), roster: true})
			at(3*time.Minute + 30*time.Second)
			if n := len(a.starts()); n != 3 {
				t.Errorf("it had %d slots of 3", n)
			}
			if want := map[string]int{"panics": 1, "high": 0, "low": 7}[name]; a.Status().Effective != want {
				t.Errorf("it claims by %d, want %d", a.Status().Effective, want)
			}
		})
	}
}
