package app

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/store"
)

// With --drain-timeout the first signal ends no run, and the second one does, as a stop that costs no attempt. The third kills it.
func TestTheFirstSignalLetsARunComeToItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags []string
		twice bool
		code  int
	}{
		"run":                            {[]string{"--start-within", oneSlot}, false, exit.OK},
		"run, with a second signal":      {[]string{"--start-within", oneSlot}, true, exit.OK},
		"run once":                       {[]string{"--once"}, false, exit.OK},
		"run once, with a second signal": {[]string{"--once"}, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			end := filepath.Join(t.TempDir(), "end")
			flags := append([]string{"--every", oneSlot, "--once-per-slot", "--drain-timeout", "1h", "--stop-grace", "1h"}, c.flags...)
			p := startRun(t, storeArg, "a", flags, "sh", "-c", `trap "exit 3" TERM; echo up; until [ -e "$0" ]; do sleep 0.05; done`, end)
			p.await("up\n")
			p.signal(syscall.SIGTERM)
			p.await("draining: terminated: the run may go on for 1h; a second signal stops it\n")
			if len(p.descendants()) == 0 {
				t.Error("the first signal has ended the command")
			}
			if c.twice {
				time.Sleep(1100 * time.Millisecond) // Two at once are one wish.
				p.signal(syscall.SIGTERM)
			} else {
				must(t, os.WriteFile(end, nil, 0o600))
			}
			p.exits(c.code)
			all := records(t, l)
			head := all[len(all)-1]
			spared := map[bool]int{true: 1}[c.twice]
			if done := !head.DoneUntil.IsZero(); head.Kind != store.KindRelease || done == c.twice || head.Spared != spared || strings.Contains(p.output(), "stopping: a second signal\n") != c.twice {
				t.Errorf("the head is %+v, done: %v, want a release, and %d attempts that don't count", head, done, spared)
			}
		})
	}
}

func TestTheThirdSignalKillsARunThatDrains(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"run": {"--start-within", oneSlot}, "run once": {"--once"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			flags := append([]string{"--every", oneSlot, "--once-per-slot", "--drain-timeout", "1h", "--stop-grace", "1h"}, flags...)
			p := startRun(t, storeArg, "a", flags, "sh", "-c", `trap "echo told" TERM; echo up; while :; do sleep 0.05; done`)
			p.await("up\n")
			p.signal(syscall.SIGTERM)
			p.await("draining: terminated")
			for _, then := range []string{"told\n", "killed on request"} {
				time.Sleep(1100 * time.Millisecond) // Two at once are one wish.
				p.signal(syscall.SIGTERM)
				p.await(then)
			}
			p.wait()
			if all := records(t, l); all[len(all)-1].Spared != 1 {
				t.Errorf("the head is %+v, want an attempt that doesn't count", all[len(all)-1])
			}
		})
	}
}
