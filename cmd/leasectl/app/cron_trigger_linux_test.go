package app

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/internal/suites"
)

// triggered are machines with jobs that are asked to run at random moments.
type triggered struct {
	t        *testing.T
	storeArg string
	file     string
	every    time.Duration
	at       func(i int) string
	rnd      *rand.Rand
	running  []*process
	names    []string        // of those that run
	killed   map[string]bool // by name
	asked    []int           // triggers of each job
	paused   int
}

// Jobs are asked to run at random moments, of which half are around boundaries, while machines are killed and jobs are
// paused: each trigger has its run, and only one whose machine was killed is made again. Each slot is done as ever.
func TestEachTriggerHasItsRunAndTheScheduleItsOwn(t *testing.T) {
	if race.Enabled {
		t.Skip("with the race detector, the runs take more than two processors")
	}
	t.Parallel()
	const machines, jobs = 3, 8
	k := cronProof(t, 15, 20)
	l, storeArg := k.ledger(t)
	dir := t.TempDir()
	w := &triggered{
		t: t, storeArg: storeArg, every: 8 * time.Second, rnd: rand.New(rand.NewPCG(5, 6)), killed: map[string]bool{}, asked: make([]int, jobs),
		at: func(i int) string { return filepath.Join(dir, fmt.Sprint("job", i)) },
	}
	text := strings.Builder{}
	text.WriteString("jobs:\n")
	for i := range jobs { // A lease is extended a second ahead: on a busy machine none is late, and no run is cut that isn't killed.
		// A trigger may be given in the millisecond in which a slot starts, but it lasts longer.
		by := fmt.Sprintf(`LEASE_SLOT_START="$LEASE_SLOT_START/$LEASE_SLOT_END"; echo "$LEASE_SLOT_START $LEASE_INSTANCE_ID" >> %s.by; `, w.at(i))
		fmt.Fprintf(&text, "  - name: job%d\n    every: %v\n    failoverWithin: %v\n    catchUp: all\n    command: '%s%s'\n", i, w.every, w.every/2, by, fmt.Sprintf(mark, w.at(i), 0.1))
	}
	w.file = jobsAt(t, text.String())[0]
	for i := range machines {
		w.running, w.names = append(w.running, nil), append(w.names, "")
		w.begin(i)
	}
	w.running[0].await("ready: ")
	for n := 0; n < 2*k.tries; {
		n += w.round()
	}
	ended := storeTime(t, l)
	lacks := func() (all []string) {
		for i := range jobs {
			ran := w.ran(i)
			if slots := undone(w.done(i), w.every, ended); len(slots) > 0 || len(ran) < w.asked[i] {
				all = append(all, fmt.Sprintf("job%d: %d of %d triggers, and not the slots %q", i, len(ran), w.asked[i], slots))
			}
		}
		return all
	}
	for ctx := suites.Deadline(t); len(lacks()) > 0; time.Sleep(100 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("not done: %s", strings.Join(lacks(), "\n"))
		}
	}
	w.judge()
	if got := leasectl(t, nil, "verify", "--store", storeArg); got.code != exit.OK {
		t.Errorf("leasectl verify = %+v", got)
	}
}

// begin starts a machine, by a name of its own.
func (w *triggered) begin(i int) {
	w.names[i] = fmt.Sprintf("%d-%d", i, len(w.killed))
	w.running[i] = start(w.t, "cron", "--store", w.storeArg, "--instance-id", w.names[i], w.file)
	w.running[i].await(" jobs of ")
}

// round gives triggers, once a machine was killed or a job paused, or neither. It returns how many.
func (w *triggered) round() (n int) {
	time.Sleep(time.Duration(w.rnd.IntN(600)) * time.Millisecond)
	if w.rnd.IntN(2) == 0 {
		next := time.Now().Truncate(w.every).Add(w.every)
		time.Sleep(time.Until(next) + time.Duration(w.rnd.IntN(600)-300)*time.Millisecond)
	}
	jobs := w.rnd.Perm(len(w.asked))[:3]
	switch w.rnd.IntN(3) {
	case 0:
		i := w.rnd.IntN(len(w.running))
		w.running[i].die()
		w.killed[w.names[i]] = true
		w.begin(i)
	case 1:
		if got := w.order("pause", jobs[0], "--for", "2s"); got.code == exit.OK {
			w.paused++
		}
	}
	for _, i := range jobs {
		switch got := w.order("trigger", i); {
		case got.code == exit.OK:
			w.asked[i]++
			n++
		case !strings.Contains(got.stderr, "nothing was written") && !strings.Contains(got.stderr, "orders"):
			w.t.Errorf("leasectl trigger = %+v", got)
		}
	}
	return n
}

func (w *triggered) order(name string, job int, more ...string) output {
	return leasectl(w.t, nil, append([]string{name, "--store", w.storeArg, "--worker-type", fmt.Sprint("job", job), "--reason", "proof"}, more...)...)
}

// scheduled is the start of a slot, of START/END, and reports whether a run was one of the schedule.
func (w *triggered) scheduled(slot string) (start string, is bool) {
	start, end, _ := strings.Cut(slot, "/")
	from, err := time.Parse(time.RFC3339, start)
	until, err2 := time.Parse(time.RFC3339, end)
	return start, err == nil && err2 == nil && until.Sub(from) == w.every
}

// done are the slots of the schedule in which a job is done, by their starts.
func (w *triggered) done(job int) map[string]int {
	all := map[string]int{}
	for slot, n := range counts(w.at(job) + ".done") {
		if start, is := w.scheduled(slot); is {
			all[start] = n
		}
	}
	return all
}

// ran are the runs of a job that triggers had and that ended, by how often.
func (w *triggered) ran(job int) map[string]int {
	runs := counts(w.at(job) + ".done")
	for slot := range runs {
		if _, is := w.scheduled(slot); is {
			delete(runs, slot)
		}
	}
	return runs
}

// judge demands that each trigger had one run, and each slot, but for those whose machine was killed.
func (w *triggered) judge() {
	asked, again, slots := 0, 0, 0
	for i := range w.asked {
		if ran := w.ran(i); len(ran) != w.asked[i] {
			w.t.Errorf("job%d: %d runs by triggers, want %d", i, len(ran), w.asked[i])
		}
		if twice := procs.Lines(w.at(i) + ".twice"); len(twice) > 0 {
			w.t.Errorf("job%d ran twice at a time in %q", i, twice)
		}
		asked += w.asked[i]
		by := map[string][]string{}
		for _, line := range procs.Lines(w.at(i) + ".by") {
			slot, name, _ := strings.Cut(line, " ")
			by[slot] = append(by[slot], name)
		}
		for slot, names := range by {
			again += len(names) - 1
			if _, is := w.scheduled(slot); is {
				slots++
			}
			if alive := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return w.killed[name] }); len(alive) > 1 {
				w.t.Errorf("job%d was run for %s by %q, of which %q weren't killed", i, slot, names, alive)
			}
		}
	}
	w.t.Logf("%d triggers, %d machines killed, %d pauses: each trigger had its run, %d slots theirs, and %d runs were made again, whose machines were killed", asked, len(w.killed), w.paused, slots, again)
}
