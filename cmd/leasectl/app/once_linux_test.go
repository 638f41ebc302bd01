package app

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

// startOnce starts a worker whose command is a job of each slot.
func startOnce(t *testing.T, storeArg, name, every, failover string, flags []string, command ...string) *process {
	t.Helper()
	flags = append([]string{"--every", every, "--once-per-slot", "--failover-within", failover, "--start-within", every}, flags...)
	return startRun(t, storeArg, name, flags, command...)
}

// ends sends SIGTERM to workers, and demands that they end as they should.
func ends(t *testing.T, ps ...*process) {
	t.Helper()
	for _, p := range ps {
		// From then on it heeds signals.
		procs.Eventually(t, "the worker begins", func() bool {
			return strings.Contains(p.output(), " of worker type ") || strings.Contains(p.output(), `"worker began"`)
		})
		p.signal(syscall.SIGTERM)
	}
	for _, p := range ps {
		p.exits(exit.OK)
		if left := p.descendants(); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// rowsOf are the rows that inspect slots shows.
func rowsOf(t *testing.T, storeArg string) []inspect.Slot {
	t.Helper()
	return inspected(t, nil, "--store", storeArg, "--last", "100").Slots
}

// oneSlot is longer than any test.
const oneSlot = "2400h"

func TestAJobIsDoneOnceInEachSlotByThreeWorkers(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	file := filepath.Join(t.TempDir(), "runs")
	var ps []*process
	for _, name := range []string{"a", "b", "c"} {
		ps = append(ps, startOnce(t, storeArg, name, "6s", "3s", []string{"--tie-break", "rotate"}, "sh", "-c", `echo "$LEASE_SLOT_START" >> "$0"`, file))
	}
	procs.Eventually(t, "three runs", func() bool { return len(procs.Lines(file)) >= 3 })
	ends(t, ps...)
	finished := map[string]int{}
	for _, row := range rowsOf(t, storeArg) {
		if row.State == history.Done {
			finished[row.SlotStart]++
		}
	}
	runs := map[string]int{}
	for _, slot := range procs.Lines(file) {
		runs[slot]++
		if runs[slot] > 1 || finished[slot] != 1 {
			t.Errorf("slot %s: run %d times, and shown as done %d times, want once", slot, runs[slot], finished[slot])
		}
	}
}

// Whose turn the next attempt is, TestTheReleasedRestOfASlotIsUsed of workerlease shows: one that gets no processor may miss
// its turn.
func TestAJobThatFailsIsTriedSoOftenInAll(t *testing.T) {
	t.Parallel()
	l, storeArg := newLedger(t)
	file := filepath.Join(t.TempDir(), "runs")
	job := []string{"sh", "-c", `echo "$LEASE_INSTANCE_ID" >> "$0"; exit 3`, file}
	ps := []*process{
		startOnce(t, storeArg, "a", oneSlot, "4s", []string{"--max-attempts", "3", "--min-retry", "1s"}, job...),
		startOnce(t, storeArg, "b", oneSlot, "4s", []string{"--max-attempts", "3", "--min-retry", "1s", "--log-format", "json"}, job...),
		startOnce(t, storeArg, "c", oneSlot, "4s", []string{"--max-attempts", "3", "--min-retry", "1s"}, job...),
	}
	ps[0].await("given up: not done, and not tried again")
	ps[1].await(`"slot given up"`)
	ps[2].await("given up: not done, and not tried again")
	ends(t, ps...)
	for line := range strings.Lines(ps[1].output()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("line %q is no JSON", line)
		}
	}
	runs, rows := procs.Lines(file), rowsOf(t, storeArg)
	var tried []string
	for i, row := range rows {
		if row.Attempt != i+1 {
			t.Errorf("row %d is %+v, want one more attempt", i, row)
		}
		// One that was too slow to begin is an attempt, too.
		if row.State != history.Expired {
			tried = append(tried, row.InstanceID)
		}
	}
	if len(rows) != 3 || !slices.Equal(runs, tried) {
		t.Errorf("%d attempts, by %q, and the command was run by %q, want three", len(rows), tried, runs)
	}
	for i, p := range ps {
		want := "failed: exit code 3, ended by itself"
		if i == 1 {
			want = `"exitCode":3,"slot"`
		}
		if ran := slices.Contains(runs, []string{"a", "b", "c"}[i]); strings.Contains(p.output(), want) != ran {
			t.Errorf("worker %d ran: %v, and told %q: %v", i, ran, want, !ran)
		}
	}
	wantSound(t, l)
}

func TestAJobThatIsStoppedIsDoneOrLeftToOthers(t *testing.T) {
	for code, finished := range map[int]bool{0: true, 7: false} {
		t.Run(fmt.Sprintf("with exit code %d", code), func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			p := startOnce(t, storeArg, "a", oneSlot, "10h", []string{"--stop-grace", "5m"}, "sh", "-c", fmt.Sprintf(`trap 'sleep 0.3; echo told; exit %d' TERM; echo up; while :; do sleep 0.02; done`, code))
			p.await("up\n")
			ends(t, p)
			out := p.output()
			if !strings.Contains(out, "told\n") || strings.Contains(out, ": done\n") != finished || strings.Contains(out, ": failed: worker stopped") == finished {
				t.Errorf("the command was told, and has done its work, or else failed: want %v", finished)
			}
			all := records(t, l)
			head := all[len(all)-1]
			if head.DoneUntil.IsZero() == finished || !finished && head.Kind != store.KindRelease {
				t.Errorf("the head is %+v, want that it tells of what is done: %v", head, finished)
			}
			other := startOnce(t, storeArg, "b", oneSlot, "10h", nil, "sh", "-c", "exit 0")
			if finished {
				other.await("is done already")
			} else {
				other.await(": done\n")
			}
			ends(t, other)
		})
	}
}

func TestAMissedSlotIsMadeUpForInTheNext(t *testing.T) {
	brief(t)
	t.Parallel()
	l, storeArg := newLedger(t)
	file := filepath.Join(t.TempDir(), "runs")
	job := []string{"sh", "-c", `echo "$LEASE_SLOT_START" >> "$0"`, file}
	p := startOnce(t, storeArg, "a", "6s", "3s", nil, job...)
	p.await(": done\n")
	ends(t, p)
	before := procs.Lines(file)
	all := records(t, l)
	missedEnd := all[len(all)-1].DoneUntil.Add(12 * time.Second)
	procs.Eventually(t, "two slots are missed", func() bool { return storeTime(t, l).After(missedEnd) })
	restarted := storeTime(t, l)
	p = startOnce(t, storeArg, "a", "6s", "3s", []string{"--catch-up", "newest"}, job...)
	procs.Eventually(t, "two more runs", func() bool { return len(procs.Lines(file)) >= len(before)+2 })
	ends(t, p)
	runs := procs.Lines(file)[len(before):]
	late, err := time.Parse(time.RFC3339, runs[0])
	must(t, err)
	if next := store.Format(late.Add(6 * time.Second)); runs[1] != next || slices.Contains(before, runs[0]) || late.Add(6*time.Second).After(restarted) {
		t.Errorf("after slots %q those of %q were run, want one that was missed, and the one behind it", before, runs)
	}
	if i := slices.IndexFunc(rowsOf(t, storeArg), func(r inspect.Slot) bool { return r.SlotStart == runs[0] && r.State == history.Done }); i < 0 {
		t.Errorf("slot %s is not shown as done: %+v", runs[0], rowsOf(t, storeArg))
	}
}
