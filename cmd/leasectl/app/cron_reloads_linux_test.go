package app

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
)

// Again and again jobs come, change and go at random, and all change their places: those that are as they were go on. One
// that runs keeps its process, and one whose runs are short begins in each slot.
func TestReloadsTouchNoJobThatIsAsItWas(t *testing.T) {
	t.Parallel()
	const stay, often, others = 5, 5, 10
	reloads := 2 * cronProof(t, 10, 20).tries
	_, storeArg := newLedger(t)
	dir := t.TempDir()
	at := func(i int) string { return filepath.Join(dir, fmt.Sprint("often", i)) }
	versions := map[int]int{}
	rnd := rand.New(rand.NewPCG(3, 4))
	text := func() string {
		var all []string
		for i := range stay {
			all = append(all, fmt.Sprintf("  - name: stays%d\n%s    command: exec sleep 1000\n", i, aDay))
		}
		for i := range often {
			all = append(all, fmt.Sprintf("  - name: often%d\n    every: 8s\n    failoverWithin: 4s\n    startWithin: 6s\n    command: '%s'\n", i, fmt.Sprintf(mark, at(i), 0.05)))
		}
		for i, version := range versions {
			all = append(all, fmt.Sprintf("  - name: other%d\n    every: 2s\n    command: sleep 0.1\n    env: {VERSION: \"%d\"}\n", i, version))
		}
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return strings.Repeat("#\n", rnd.IntN(3)) + "jobs:\n" + strings.Join(all, "")
	}
	p, file := startCron(t, storeArg, nil, text())
	for i := range stay {
		p.await(fmt.Sprintf("stays%d: slot ", i))
	}
	for n := range reloads {
		before := maps.Clone(versions)
		for range 1 + rnd.IntN(3) {
			if i := rnd.IntN(others); rnd.IntN(3) == 0 {
				delete(versions, i)
			} else {
				versions[i] = n
			}
		}
		unchanged, removed := stay+often, 0
		for i, version := range before {
			switch now, is := versions[i]; {
			case !is:
				removed++
			case now == version:
				unchanged++
			}
		}
		rewrite(t, file, text())
		p.signal(syscall.SIGHUP)
		procs.Eventually(t, "the files are reloaded", func() bool { return strings.Count(p.output(), "reloaded: ") > n })
		said := p.output()[strings.LastIndex(p.output(), "reloaded: "):]
		var got, changed, added, gone int
		said = strings.Replace(said, " jobs ", " job ", 1)
		if _, err := fmt.Sscanf(said, "reloaded: %d job unchanged, %d changed, %d added, %d removed", &got, &changed, &added, &gone); err != nil || got != unchanged || gone != removed {
			t.Fatalf("reload %d: %.100q, want %d jobs unchanged and %d removed", n, said, unchanged, removed)
		}
		time.Sleep(time.Duration(rnd.IntN(250)) * time.Millisecond)
	}
	for i := range often {
		procs.Eventually(t, "three runs", func() bool { return len(procs.Lines(at(i)+".begun")) >= 3 })
	}
	p.signal(syscall.SIGTERM)
	p.exits(exit.OK)
	for i := range stay {
		if n := len(pids(p, fmt.Sprint("stays", i))); n != 1 {
			t.Errorf("stays%d was begun %d times, want once", i, n)
		}
	}
	slots, again := 0, 0
	for i := range often {
		begun := counts(at(i) + ".begun")
		slots += len(begun)
		for _, n := range begun {
			again += n - 1
		}
		last, err := time.Parse(time.RFC3339, slices.Max(slices.Collect(maps.Keys(begun))))
		if missing := undone(begun, 8*time.Second, last); err != nil || len(missing) > 0 {
			t.Errorf("often%d wasn't begun in %q, %v", i, missing, err)
		}
	}
	if failed := strings.Count(p.output(), "failed: ") + strings.Count(p.output(), "the lease is over"); again > failed {
		t.Errorf("%d runs were begun again, and %d failed", again, failed) // On a busy machine a lease may be lost.
	}
	t.Logf("%d reloads; of %d runs that went on through all of them none was touched, and short ones began in each of %d slots", reloads, stay, slots)
}
