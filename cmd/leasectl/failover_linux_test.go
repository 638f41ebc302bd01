package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/audit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// runExtended starts a worker whose lease is extended every 3 s at most, 1 s before
// the end, and goes on from slot to slot.
func runExtended(t *testing.T, storeArg string, command ...string) *process {
	t.Helper()
	args := []string{
		"run", "--store", storeArg, "--worker-type", "t", "--instance-id", "a", "--every", "8s", "--join-mid-slot",
		"--failover-within", "4s", "--continuous", "-v", "--",
	}
	return start(t, append(args, command...)...)
}

// settled waits until the guard has been told of an extension for sure, and no other
// comes soon, and returns the newest window and the one before.
func settled(t *testing.T, p *process, l store.Ledger) (newest, before store.Record) {
	t.Helper()
	n := strings.Count(p.output(), ": extended, ")
	eventually(t, "an extension", func() bool { return strings.Count(p.output(), ": extended, ") > n })
	time.Sleep(200 * time.Millisecond)
	all := records(t, l)
	return all[len(all)-1], all[len(all)-2]
}

func TestACommandLivesOnWhileItsLeaseIsExtended(t *testing.T) {
	t.Parallel()
	l, storeArg := newLedger(t)
	p := runExtended(t, storeArg, "sh", "-c", `trap 'echo told' TERM; echo up; while :; do sleep 0.1; done`)
	p.await("up\n")
	pids := p.descendants()
	eventually(t, "the third slot", func() bool {
		r := records(t, l)
		return !r[len(r)-1].SlotStart.Before(r[0].SlotEnd.Add(8 * time.Second))
	})
	all := records(t, l)
	for _, r := range all[1:] {
		if r.Claim != all[0].Claim || r.Token != all[0].Token {
			t.Errorf("seq %d is of the claim %s with token %d, want those of the first, %s and %d", r.Seq, r.Claim, r.Token, all[0].Claim, all[0].Token)
		}
	}
	// What was left of the first slot, three parts of the second, and one of the third.
	if len(all) < 5 {
		t.Errorf("%d windows in three slots, want at least 5", len(all))
	}
	if out := p.output(); strings.Contains(out, "told") || strings.Count(out, "command started") != 1 || strings.Contains(out, "expired") {
		t.Error("the command was disturbed")
	}
	if now := p.descendants(); !slices.Contains(now, pids[0]) {
		t.Errorf("the processes are %v, were %v", now, pids)
	}
	p.signal(syscall.SIGTERM)
	p.await("told\n")
	if code := p.wait(); code != exit.OK {
		t.Errorf("leasectl run = %d, want 0", code)
	}
	all = records(t, l)
	if head := all[len(all)-1]; head.Kind != store.KindRelease {
		t.Errorf("the head is %+v, want a release", head)
	}
}

func TestNoDescendantIsLeftWhenLeasectlIsKilledBetweenExtensions(t *testing.T) {
	t.Parallel()
	l, storeArg := newLedger(t)
	p := runExtended(t, storeArg, "sh", "-c", family)
	p.await("family up")
	newest, _ := settled(t, p, l)
	p.signal(syscall.SIGKILL)
	killed := time.Now()
	p.wait()
	if alive, _ := p.gone(); alive.Sub(killed) > time.Second {
		t.Errorf("some of the family lived %v after SIGKILL of leasectl", alive.Sub(killed))
	}
	if left := newest.WindowEnd.Sub(killed); left < time.Second {
		t.Errorf("killed %v before the end of its window: too late to tell it from the end", left)
	}
}

func TestNoDescendantOutlivesTheLastDeadlineTold(t *testing.T) {
	t.Parallel()
	l, storeArg := newLedger(t)
	p := runExtended(t, storeArg, "sh", "-c", family)
	p.await("family up")
	newest, before := settled(t, p, l)
	p.signal(syscall.SIGSTOP)
	alive, dead := p.gone()
	if all := records(t, l); all[len(all)-1].Seq != newest.Seq {
		t.Fatalf("the head is seq %d, want %d: leasectl went on when it was stopped", all[len(all)-1].Seq, newest.Seq)
	}
	// The ledger and this process share the wall clock. The margin is 80 ms, and so
	// much is for killing.
	if late := alive.Sub(newest.WindowEnd); late > 500*time.Millisecond {
		t.Errorf("some of the family lived %v after the end of the window that was told last", late)
	}
	if early := newest.WindowEnd.Sub(dead); early > time.Second {
		t.Errorf("the family was gone %v before the end of the window that was told last, want right before it", early)
	}
	if on := dead.Sub(before.WindowEnd); on < 500*time.Millisecond {
		t.Errorf("the family was gone %v after the end of the window before, want it to live on", on)
	}
}

func TestAnotherTakesOverWhatIsLeftOfASlot(t *testing.T) {
	t.Parallel()
	l, storeArg := newLedger(t)
	var ps []*process
	for _, name := range []string{"a", "b"} {
		ps = append(ps, start(t, "run", "--store", storeArg, "--worker-type", "t", "--instance-id", name, "--every", "1h", "--join-mid-slot",
			"--failover-within", "2s", "--", "sleep", "1000"))
		ps[0].await("command started")
	}
	ps[1].await("ready")
	ps[0].signal(syscall.SIGKILL)
	died := storeTime(t, l)
	ps[0].wait()
	ps[1].await("command started")
	all := records(t, l)
	i := slices.IndexFunc(all, func(r store.Record) bool { return r.InstanceID == "b" })
	if late := all[i].WindowStart.Sub(died); late > 4*time.Second {
		t.Errorf("taken over %v after the death, want within 2 s, and some", late)
	}
	if problems := audit.Ledger(all); len(problems) > 0 {
		t.Errorf("the ledger: %q", problems)
	}
}

func TestACommandThatEndsIsStartedAgainInTheNextSlotOfItsLease(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	file := filepath.Join(t.TempDir(), "runs")
	p := start(t, "run", "--store", storeArg, "--worker-type", "t", "--every", "2s", "--continuous", "--", "sh", "-c", `echo $LEASE_TOKEN $LEASE_SLOT_START $(date +%s%N) >> "$0"`, file)
	var runs [][]string
	eventually(t, "three runs under one lease", func() bool {
		b, _ := os.ReadFile(file)
		runs = nil
		tokens := map[string]int{}
		for line := range strings.Lines(string(b)) {
			if fields := strings.Fields(line); strings.HasSuffix(line, "\n") {
				runs = append(runs, fields)
				tokens[fields[0]]++
			}
		}
		return slices.ContainsFunc(runs, func(r []string) bool { return tokens[r[0]] >= 3 })
	})
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != exit.OK {
		t.Errorf("leasectl run = %d, want 0", code)
	}
	seen := map[string]bool{}
	for _, r := range runs {
		if seen[r[1]] {
			t.Errorf("started twice in slot %s", r[1])
		}
		seen[r[1]] = true
		slot, err := time.Parse(time.RFC3339, r[1])
		ns, durErr := time.ParseDuration(r[2] + "ns")
		if at := time.Unix(0, int64(ns)); errors.Join(err, durErr) != nil || at.Before(slot) || at.After(slot.Add(2*time.Second)) {
			t.Errorf("the run in slot %s was at %v: %v", r[1], at, errors.Join(err, durErr))
		}
	}
}

// A store that doesn't answer until the command was told to end, and then does.
func TestACommandWhoseLeaseIsExtendedLateIsStartedAgain(t *testing.T) {
	t.Parallel()
	inner := memory.New(memory.Options{})
	if err := inner.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	link := faultstore.New(inner, faultstore.Options{})
	dir := t.TempDir()
	up, told := filepath.Join(dir, "up"), filepath.Join(dir, "told")
	a := &app{env: os.Environ(), stdout: &bytes.Buffer{}, stderr: shared(&bytes.Buffer{})}
	o := workerlease.Options{
		WorkerType: "t", InstanceID: "a", Schedule: slots.Must(slots.Every(time.Hour)), JoinMidSlot: true,
		FailoverWithin: 8 * time.Second, MinBackoff: 20 * time.Millisecond, MaxBackoff: 20 * time.Millisecond,
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	work := &job{
		pacing: pacingOf(o, 0), name: "/bin/sh", args: []string{"-c", `trap ': >> "$1"; exit 0' TERM; echo up >> "$0"; while :; do sleep 0.02; done`, up, told},
		env: a.env, journal: a.newJournal("text", zapcore.DebugLevel), urgent: make(chan struct{}),
	}
	done := make(chan error, 1)
	go func() { done <- a.lease(ctx, storeuri.Target{}, link, o, work.journal, work) }()
	lines := func() int {
		b, _ := os.ReadFile(up)
		return strings.Count(string(b), "\n")
	}
	eventually(t, "the command", func() bool { return lines() == 1 })
	link.Break(faultstore.Down())
	eventually(t, "the command is told to end", func() bool {
		_, err := os.Stat(told)
		return err == nil
	})
	link.Mend()
	eventually(t, "the command is started again", func() bool { return lines() == 2 })
	head, _, err := inner.Tail(t.Context(), "t", 10)
	if err != nil || len(head) < 2 || head[0].Token != head[len(head)-1].Token {
		t.Errorf("the ledger has %+v, %v, want one term that was extended", head, err)
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("lease() = %v", err)
	}
}
