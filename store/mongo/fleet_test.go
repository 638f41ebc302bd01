package mongo

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// fleet judges what workers do.
type fleet struct {
	t *testing.T

	mu      sync.Mutex
	working string // who works, or nobody
	token   int64
	led     int
	newest  time.Time
}

// work is a task that works as long as it may.
func (f *fleet) work(name string) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		f.mu.Lock()
		if f.working != "" {
			f.t.Errorf("%v: %s works beside %s", time.Now(), name, f.working)
		}
		if l.Token <= f.token {
			f.t.Errorf("%v: %s works with token %d after %d", time.Now(), name, l.Token, f.token)
		}
		f.working, f.token, f.newest = name, l.Token, time.Now()
		f.led++
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		f.working = ""
		f.mu.Unlock()
		return nil
	}
}

// Three workers, each with its own client, through elections, step-downs, kills and partitions of a
// primary that some of them still reach: as recorded from real servers, but in bubbles.
func TestWorkersOnASetThroughElectionsAndRollbacks(t *testing.T) {
	suites.Prove(t, "it simulates workers over a set for long")
	t.Parallel()
	seeds := uint64(3)
	if race.Enabled {
		seeds = 1 // The others run the same code.
	}
	if n, err := strconv.ParseUint(os.Getenv("SLOTLEASE_SIM_SEEDS"), 10, 64); err == nil {
		seeds = n
	}
	all := make(chan map[string]int, seeds)
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { all <- liveThrough(t, rand.New(rand.NewPCG(seed, 18))) })
			})
		}
	})
	close(all)
	sum := map[string]int{}
	for seen := range all {
		for what, n := range seen {
			sum[what] += n
		}
	}
	t.Logf("%d seeds: %v", seeds, sum)
	for _, what := range []string{"leases", "rolled back", "50", "11000+50", "11602", "11000+11602", "10107"} {
		if sum[what] == 0 && !race.Enabled {
			t.Errorf("%s: none, want some: of each kind that was recorded", what)
		}
	}
}

const (
	slot   = 6 * time.Second
	faults = 40 // about one in 40 s
)

// liveThrough plays faults, and returns how often what was seen.
func liveThrough(t *testing.T, random *rand.Rand) map[string]int {
	t.Helper()
	s := serveReplicaSet(t, inBubble)
	s.news = 300 * time.Millisecond
	for _, m := range s.members {
		m.slow.Store(int64(2 * time.Millisecond))
	}
	f := &fleet{t: t}
	every, err := slots.Every(slot)
	must(t, "Every()", err)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	var links []*fakeLink
	for i := range 3 {
		client, link := s.connect(t)
		links = append(links, link)
		l := open(t, Options{Client: client})
		must(t, "Init()", l.Init(ctx))
		name := fmt.Sprint("w", i)
		o := workerlease.Options{WorkerType: "job", InstanceID: name, Schedule: every, Priority: i}
		ended.Go(func() {
			if err := workerlease.NewClient(l, workerlease.ClientOptions{}).Run(ctx, o, f.work(name)); err != nil {
				t.Errorf("%s: Run() = %v, want nil", name, err)
			}
		})
	}
	time.Sleep(time.Minute)
	for range faults {
		strike(s, links, random)
		time.Sleep(between(random, 15*time.Second, 45*time.Second))
	}
	time.Sleep(time.Minute)
	f.mu.Lock()
	defer f.mu.Unlock()
	if since := time.Since(f.newest); since > 2*slot {
		t.Errorf("the last lease began %v ago, want one in each slot since the last fault", since)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := maps.Clone(s.answered)
	seen["leases"], seen["rolled back"] = f.led, s.rolledBack
	return seen
}

// strike plays one fault of the primary, from its begin to its end.
func strike(s *fakeReplicaSet, links []*fakeLink, random *rand.Rand) {
	old := s.primary()
	switch random.IntN(4) {
	case 0:
		s.mu.Lock()
		before := s.reads
		s.mu.Unlock()
		soon(s, func() bool { return s.reads > before }) // A claim follows.
		s.stepDown(old)
		time.Sleep(between(random, time.Second, 12*time.Second))
		s.elect(s.other(old))
	case 1:
		s.kill(old)
		time.Sleep(between(random, 2*time.Second, 12*time.Second))
		s.elect(s.other(old))
		time.Sleep(between(random, 0, 10*time.Second))
		s.start(old)
	default:
		// Some workers reach the old primary only, which doesn't know that it was replaced. Then
		// it gives up.
		s.split(old)
		for _, l := range links[random.IntN(len(links)):] {
			l.reachesOnly(old)
		}
		time.Sleep(between(random, 2*time.Second, 12*time.Second))
		s.elect(s.other(old))
		time.Sleep(between(random, 0, 12*time.Second))
		soon(s, func() bool { return s.waiting > 0 })
		s.stepDown(old)
		time.Sleep(between(random, 0, 3*time.Second))
		s.heal(old)
		for _, l := range links {
			l.reachesOnly(nil)
		}
	}
}

// soon waits for a moment at which something is the case, for two slots at most.
func soon(s *fakeReplicaSet, is func() bool) {
	for range 2 * slot / time.Millisecond {
		s.mu.Lock()
		now := is()
		s.mu.Unlock()
		if now {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}
