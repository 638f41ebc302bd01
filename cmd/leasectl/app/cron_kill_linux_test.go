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
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
)

// mark is a shell script that writes down what a run does: its slot when it begins and when it is done, and that it isn't
// alone. The kernel lets go of the lock when the run is gone, however that came.
const mark = `exec 9> %[1]s.lock; flock -n 9 || echo "$LEASE_SLOT_START" >> %[1]s.twice; echo "$LEASE_SLOT_START" >> %[1]s.begun; sleep %[2]v; echo "$LEASE_SLOT_START" >> %[1]s.done`

// Three machines run many jobs, and are killed again and again, with all that runs there: no job runs twice at a time. One
// that has a single attempt never begins twice, and one that is tried again and caught up is done in each slot.
func TestJobsOfMachinesThatAreKilled(t *testing.T) {
	if race.Enabled {
		t.Skip("with the race detector, 45 jobs in slots of 5 s take more than two processors")
	}
	t.Parallel()
	const machines = 3
	k := cronProof(t, 20, 15)
	every := k.every()
	l, storeArg := k.ledger(t)
	dir := t.TempDir()
	at := func(i int) string { return filepath.Join(dir, fmt.Sprint("job", i)) }
	file := jobsAt(t, markedJobs(k, at))[0]
	begin := func() *process {
		p := start(t, "cron", "--store", storeArg, file)
		p.await(" jobs of ") // From then on it heeds signals.
		return p
	}
	var running []*process
	for range machines {
		running = append(running, begin())
	}
	running[0].await("ready: ")
	rnd := rand.New(rand.NewPCG(1, 2))
	killed := 0
	for range k.tries {
		time.Sleep(time.Duration(rnd.Int64N(int64(min(every*3/5, 3*time.Second+every/20)))))
		i := rnd.IntN(machines)
		killed += running[i].die()
		running[i] = begin()
	}
	ended := storeTime(t, l)
	// What was missed is run late. A machine starts at once with what has been missed before it came, too.
	lost := func() (all []string) {
		for i := range k.jobs {
			if slots := undone(counts(at(i)+".done"), every, ended); caughtUp(i) && len(slots) > 0 {
				all = append(all, fmt.Sprintf("job%d in %q", i, slots))
			}
		}
		return all
	}
	for ctx := suites.Deadline(t); len(lost()) > 0; time.Sleep(100 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("not done: %s", strings.Join(lost(), "\n"))
		}
	}
	for _, p := range running {
		p.await("ready: ")
		p.signal(syscall.SIGTERM)
	}
	for _, p := range running {
		p.exits(exit.OK)
	}
	begun, again := 0, 0
	for i := range k.jobs {
		if twice := procs.Lines(at(i) + ".twice"); len(twice) > 0 {
			t.Errorf("job%d ran twice at a time in %q", i, twice)
		}
		for slot, n := range counts(at(i) + ".begun") {
			begun += n
			if n > 1 && !caughtUp(i) {
				t.Errorf("job%d, which has a single attempt, began %d times in %s", i, n, slot)
			} else if n > 1 {
				again++
			}
		}
	}
	if got := leasectl(t, nil, "verify", "--store", storeArg); got.code != exit.OK {
		t.Errorf("leasectl verify = %+v", got)
	}
	t.Logf("%s: %d kills of machines, with %d processes; %d runs of %d jobs, 0 twice at a time, 0 lost; %d slots had more than one attempt", k.store, k.tries, killed, begun, k.jobs, again)
}

// caughtUp says of a job of markedJobs whether it is tried until it is done. The others have a single attempt.
func caughtUp(i int) bool { return i%2 == 0 }

// markedJobs is a file of jobs, each of which marks its runs at a place of its own.
func markedJobs(k proof, at func(i int) string) string {
	text := strings.Builder{}
	text.WriteString("jobs:\n")
	for i := range k.jobs {
		fmt.Fprintf(&text, "  - name: job%d\n    every: %v\n    command: '%s'\n", i, k.every(), fmt.Sprintf(mark, at(i), k.every().Seconds()/50))
		if caughtUp(i) {
			text.WriteString("    catchUp: all\n    maxAttempts: 10000\n    overrun: stop\n") // What is cut at the end of its slot is done late.
		} else {
			text.WriteString("    maxAttempts: 1\n")
		}
	}
	return text.String()
}

// counts is how often each line is in a file.
func counts(path string) map[string]int {
	n := map[string]int{}
	for _, line := range procs.Lines(path) {
		n[line]++
	}
	return n
}

// undone are the slots of a job, between the first that was done and a time, that weren't done.
func undone(done map[string]int, every time.Duration, until time.Time) (missing []string) {
	if len(done) == 0 {
		return []string{"all"}
	}
	first, err := time.Parse(time.RFC3339, slices.Min(slices.Collect(maps.Keys(done))))
	if err != nil {
		return []string{err.Error()}
	}
	for at := first; at.Before(until.Add(-every)); at = at.Add(every) {
		if done[store.Format(at)] == 0 {
			missing = append(missing, store.Format(at))
		}
	}
	return missing
}
