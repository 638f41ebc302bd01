package app

import (
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store"
)

// runExtended starts a worker whose lease is extended every 3 s at most, 1 s before
// the end, and goes on from slot to slot. Its command has time enough to end by itself.
func runExtended(t *testing.T, storeArg string, command ...string) *process {
	t.Helper()
	return startRun(t, storeArg, "a", []string{"--every", "8s", "--failover-within", "4s", "--continuous", "--stop-grace", "1s"}, command...)
}

// settled waits until the guard has been told of an extension for sure, and no other
// comes soon, and returns the newest window and the one before.
func settled(t *testing.T, p *process, l store.Ledger) (newest, before store.Record) {
	t.Helper()
	n := strings.Count(p.output(), ": extended, ")
	procs.Eventually(t, "an extension", func() bool { return strings.Count(p.output(), ": extended, ") > n })
	time.Sleep(200 * time.Millisecond)
	all := records(t, l)
	return all[len(all)-1], all[len(all)-2]
}

func TestACommandLivesOnWhileItsLeaseIsExtended(t *testing.T) {
	t.Parallel()
	begun := time.Now() // realtime: a machine that was busy is no verdict
	l, storeArg := newLedger(t)
	p := runExtended(t, storeArg, "sh", "-c", `trap 'echo told' TERM; echo up; while :; do sleep 0.1; done`)
	p.await("up\n")
	pid, _ := strconv.Atoi(p.awaitMatch(`command started, pid (\d+)`)[1]) // The command has others under it now and then.
	procs.Eventually(t, "the third slot", func() bool {
		r := records(t, l)
		return !r[len(r)-1].SlotStart.Before(r[0].SlotEnd.Add(8 * time.Second))
	})
	if extendedLate(p.output()) > 0 || strings.Contains(p.output(), " ended: ") {
		procs.TooLate(t, begun, "the lease was extended late")
	}
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
	if out := p.output(); strings.Contains(out, "told") || strings.Count(out, "command started") != 1 || strings.Contains(out, " ended: ") {
		t.Error("the command was disturbed")
	}
	if now := p.descendants(); !slices.Contains(now, pid) {
		t.Errorf("the processes are %v, want %d among them", now, pid)
	}
	ends(t, p)
	all = records(t, l)
	if head := all[len(all)-1]; head.Kind != store.KindRelease || !strings.Contains(p.output(), "told\n") {
		t.Errorf("the head is %+v, want that the command was told to end, and a release", head)
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
	procs.Within(t, "from the end of the window that was told last to when some of the family was seen last", alive.Sub(newest.WindowEnd), 500*time.Millisecond)
	if early := newest.WindowEnd.Sub(dead); early > time.Second {
		t.Errorf("the family was gone %v before the end of the window that was told last, want right before it", early)
	}
	if on := dead.Sub(before.WindowEnd); on < 500*time.Millisecond {
		t.Errorf("the family was gone %v after the end of the window before, want it to live on", on)
	}
}

func TestAnotherTakesOverWhenLeasectlIsKilled(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		flags  []string
		says   string
		within time.Duration // and some
		more   int           // attempts
	}{
		"a command":          {[]string{"--failover-within", "2s"}, "command started", 4 * time.Second, 0},
		"a job of each slot": {[]string{"--failover-within", "8s", "--once-per-slot", "--start-within", oneSlot}, ": done\n", 10 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			begin := func(name string, command ...string) *process {
				return startRun(t, storeArg, name, append([]string{"--every", oneSlot}, test.flags...), command...)
			}
			a := begin("a", "sh", "-c", family)
			a.await("family up")
			procs.Eventually(t, "the family is complete", func() bool { return len(a.descendants()) >= familySize })
			b := begin("b", "true")
			b.awaitMatch(`holder: "a"|` + test.says) // On a busy machine it may have taken over before.
			a.signal(syscall.SIGKILL)
			killed, died := time.Now(), storeTime(t, l) // realtime: make prove judges it
			a.wait()
			a.goneAfterKill(killed)
			b.await(test.says)
			all := records(t, l)
			i := slices.IndexFunc(all, func(r store.Record) bool { return r.InstanceID == "b" })
			last, took := all[i-1], all[i]
			procs.Within(t, "from the death to the takeover", took.WindowStart.Sub(died), test.within)
			if last.InstanceID != "a" || took.WindowStart.Before(last.WindowEnd) || took.Attempt != last.Attempt+test.more {
				t.Errorf("%+v came after %+v, want that it begins when that has ended, and %d attempts more", took, last, test.more)
			}
			ends(t, b)
			wantSound(t, l)
		})
	}
}
