package sim_test

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/sim"
)

var (
	seed  = flag.Int64("sim.seed", -1, "run only this seed, and print its trace")
	hours = flag.Int("sim.hours", 6, "simulated hours of each seed")
)

// TestMain lets the heap, which is small, grow before it is collected. That saves a seventh of
// the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// skipUnderRace skips a test that judges the simulator, or how soon and how often workers lead: it
// takes long under the race detector, which sees the same code in the other tests.
func skipUnderRace(t *testing.T) {
	t.Helper()
	if race.Enabled {
		t.Skip("takes long under the race detector, and shows nothing more")
	}
}

// number is the number of seeds to run: 10, a few in the quick run, or as many as SLOTLEASE_SIM_SEEDS asks for.
func number(t *testing.T) int64 {
	t.Helper()
	if s := os.Getenv("SLOTLEASE_SIM_SEEDS"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatalf("SLOTLEASE_SIM_SEEDS: %v", err)
		}
		return n
	}
	if suites.Quick() {
		return 3
	}
	return 10
}

// eighth is number, or an eighth of it if that is more than 800, for runs that take longer.
func eighth(t *testing.T) int64 {
	t.Helper()
	n := number(t)
	if os.Getenv(shardOf) == "" && n > 800 {
		n /= 8
	}
	return n
}

// part is a number of runs that is smaller unless many seeds are asked for, as make sim does.
func part(t *testing.T, n int64) int64 {
	t.Helper()
	if number(t) >= 100 {
		return n
	}
	return max(n/2, 1)
}

// fewer is a number of runs that may be smaller under the race detector.
func fewer(n int64) int64 {
	if race.Enabled {
		return max(n/10, 1)
	}
	return n
}

// tally is the outcome of many seeds.
type tally struct {
	Seeds, Leases, Refused, Stale int
	Extensions                    int
	Long                          int     // windows longer than a day
	Trims, LandedOnTrims          int     // in runs in which leases were extended
	Hours                         float64 // simulated; a time.Duration ends at 292 years
	Looked                        float64 // of them, for slots that nobody has
	Slots, Again                  int     // whose work is done once, and those in which it was done again
	Demands                       sim.Demands
	Struck                        sim.Struck
	Violations                    []string
	Overlaps, Unreported, Deaf    sim.Struck // holders at work at once, by the fault that struck
}

func (a *tally) add(b tally) {
	a.Seeds += b.Seeds
	a.Leases += b.Leases
	a.Extensions += b.Extensions
	a.Long += b.Long
	a.Trims += b.Trims
	a.LandedOnTrims += b.LandedOnTrims
	a.Refused += b.Refused
	a.Stale += b.Stale
	a.Hours += b.Hours
	a.Looked += b.Looked
	a.Slots += b.Slots
	a.Again += b.Again
	a.Demands.Add(b.Demands)
	a.Violations = append(a.Violations, b.Violations...)
	if a.Struck == nil {
		a.Struck, a.Overlaps, a.Unreported, a.Deaf = sim.Struck{}, sim.Struck{}, sim.Struck{}, sim.Struck{}
	}
	a.Struck.Add(b.Struck)
	a.Overlaps.Add(b.Overlaps)
	a.Unreported.Add(b.Unreported)
	a.Deaf.Add(b.Deaf)
}

// sharded runs seeds in one process per processor: goroutines of one simulation that are spread
// over processors mostly wait for each other. more adds to the tally of one seed what only the
// test that calls looks at. If only one seed is asked for, it runs here, and the result is false.
func sharded(t *testing.T, seeds int64, options func(seed int64) sim.Options, more func(o sim.Options, r *sim.Result, sum *tally)) (tally, bool) {
	t.Helper()
	if *seed >= 0 {
		o := options(*seed)
		o.Trace = true
		r := sim.Run(t, o)
		t.Logf("%+v\n%s", o.Faults, r.Trace)
		for _, x := range r.Overlaps {
			t.Logf("at %v, reported %v, deaf %v: %s, %s", x.At, x.Reported, x.Deaf, x.Older, x.Newer)
		}
		more(o, r, &tally{Overlaps: sim.Struck{}, Unreported: sim.Struck{}, Deaf: sim.Struck{}})
		r.Check(t)
		return tally{}, false
	}
	if s := os.Getenv(shardOf); s != "" {
		var first, step int64
		if _, err := fmt.Sscanf(s, "%d/%d", &first, &step); err != nil {
			t.Fatal(err)
		}
		var sum tally
		for seed := first; seed < seeds; seed += step {
			o := options(seed)
			r := sim.Run(t, o)
			one := tally{
				Seeds: 1, Leases: len(r.Leases), Hours: o.Length.Hours(), Struck: r.Struck, Demands: r.Demands,
				Refused: r.Refused, Stale: r.Stale, Overlaps: sim.Struck{}, Unreported: sim.Struck{}, Deaf: sim.Struck{},
			}
			more(o, r, &one)
			for _, v := range r.Violations {
				one.Violations = append(one.Violations, fmt.Sprintf("%s\nrepeat with: %s", v, repeat(t, seed)))
			}
			sum.add(one)
		}
		out, err := json.Marshal(sum)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("\n%s%s\n", marker, out)
		t.SkipNow() // The parent decides.
	}
	var sum tally
	var mu sync.Mutex
	var wg sync.WaitGroup
	n := int64(runtime.NumCPU())
	keep := newKept(t, seeds)
	parts := keep.parts(n)
	var next atomic.Int64
	for range n {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < parts; i = next.Add(1) - 1 {
				part, err := keep.shard(t, i, parts, seeds)
				mu.Lock()
				if err != nil {
					t.Errorf("shard %d: %v", i, err)
				}
				sum.add(part)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, v := range sum.Violations {
		t.Error(v)
	}
	if sum.Seeds != int(seeds) || seeds < 1 {
		t.Errorf("%d of %d seeds were run", sum.Seeds, seeds)
	}
	return sum, true
}

const (
	shardOf = "SLOTLEASE_SIM_SHARD" // the variable that says which seeds a process runs
	marker  = "slotlease shard: "   // before what came of them
)

// shard runs every n-th seed from i in a separate process.
func shard(t *testing.T, i, n, seeds int64) (tally, error) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.timeout", "12h", "-sim.hours", strconv.Itoa(*hours))
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d/%d", shardOf, i, n), fmt.Sprintf("SLOTLEASE_SIM_SEEDS=%d", seeds),
		"GOMAXPROCS=1", "GOGC=800")
	out, err := cmd.CombinedOutput()
	_, after, found := strings.Cut(string(out), marker)
	if !found {
		return tally{}, fmt.Errorf("%w:\n%s", err, out)
	}
	var sum tally
	line, _, _ := strings.Cut(after, "\n")
	if err := json.Unmarshal([]byte(line), &sum); err != nil {
		return tally{}, fmt.Errorf("%w:\n%s", err, out)
	}
	if err != nil { // Such as for a data race, which shows at the end only.
		return sum, fmt.Errorf("%w:\n%s", err, out)
	}
	return sum, nil
}

// repeat is the command that runs a seed again.
func repeat(t *testing.T, seed int64) string {
	return fmt.Sprintf("go test ./testutil/sim -run '^%s$' -sim.seed=%d -sim.hours=%d -v", t.Name(), seed, *hours)
}

// keptParts is how many parts a run has whose parts are kept.
const keptParts = 200

// kept is a directory with the parts of a run that are over, so that a run of hours which is
// interrupted goes on where it was. The zero value keeps nothing.
type kept struct{ path string }

// newKept is the directory that SLOTLEASE_SIM_KEEP names, for one test in one build with one
// number of seeds and hours.
func newKept(t *testing.T, seeds int64) kept {
	t.Helper()
	dir := os.Getenv("SLOTLEASE_SIM_KEEP")
	if dir == "" {
		return kept{}
	}
	build, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer build.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, build); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%dx%dh-%x", t.Name(), seeds, *hours, sum.Sum(nil)[:6]))
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return kept{path}
}

// parts is into how many parts a run is cut on n processors.
func (k kept) parts(n int64) int64 {
	if k.path == "" {
		return n
	}
	return max(n, keptParts)
}

// shard runs a part, unless it was run before.
func (k kept) shard(t *testing.T, i, n, seeds int64) (tally, error) {
	if k.path == "" {
		return shard(t, i, n, seeds)
	}
	path := filepath.Join(k.path, fmt.Sprintf("%03d.json", i))
	var sum tally
	if b, err := os.ReadFile(path); err == nil {
		return sum, json.Unmarshal(b, &sum)
	}
	sum, err := shard(t, i, n, seeds)
	if err != nil {
		return sum, err
	}
	b, err := json.Marshal(sum)
	if err != nil {
		return sum, err
	}
	if err := os.WriteFile(path+".new", b, 0o644); err != nil {
		return sum, err
	}
	return sum, os.Rename(path+".new", path)
}
