package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store"
)

// Whichever order ends its lease, and whatever it runs for, a command gets SIGTERM and has the time of --stop-grace to tidy
// up. Only then the rest of the lease is released.
func TestAnOrderLeavesTheCommandItsGrace(t *testing.T) {
	t.Parallel()
	const tidies = 300 * time.Millisecond
	hours := fmt.Sprintf("%d * * * *", time.Now().UTC().Minute()) // The slot of an hour begins now, so that a job may be begun.
	for _, order := range []string{
		"pause --for 1h --now --yes", "drain --for 1h --now --yes", "prefer --for 1h --now --instance-id other", "release",
	} {
		for _, mode := range []string{"", "--once-per-slot", "--continuous", "--once", "--once --once-per-slot"} {
			t.Run(order+" of "+mode, func(t *testing.T) {
				t.Parallel()
				begun := time.Now() // realtime: a machine that was busy is no verdict
				l, storeArg := newLedger(t)
				told, tidied := filepath.Join(t.TempDir(), "told"), filepath.Join(t.TempDir(), "tidied")
				args := append([]string{"run", "--store", storeArg, "--worker-type", "t", "--instance-id", "a", "--cron", hours, "--failover-within", "6s", "--stop-grace", "1s"}, strings.Fields(mode)...)
				script := fmt.Sprintf(`trap 'echo >>%s; sleep %v; echo >>%s; exit 3' TERM; echo up; while :; do sleep 0.01; done`, told, tidies.Seconds(), tidied)
				p := start(t, append(args, "--", "/bin/sh", "-c", script)...)
				p.await("up\n")
				mustRun(t, []string{"LEASECTL_STORE=" + storeArg}, append(strings.Fields(order), "--worker-type", "t")...)
				var released store.Record
				procs.Eventually(t, "the release of the rest, or its end", func() bool {
					all, _, err := l.Tail(t.Context(), "t", 10)
					for _, r := range all {
						if r.Kind == store.KindRelease {
							released = r
						}
					}
					over := err == nil && strings.Contains(p.output(), ": ended: ") && storeTime(t, l).After(all[0].WindowEnd)
					return released.Seq > 0 || over // A machine that is slow has no rest left.
				})
				late := released.Seq == 0 || len(procs.Lines(told)) != 1 || len(procs.Lines(tidied)) != 1
				_ = p.cmd.Process.Signal(syscall.SIGTERM) // With --once it ends by itself.
				<-p.done
				if late {
					t.Logf("the release is %+v, the command was told %q, has tidied up %q, and the log:\n%s", released, procs.Lines(told), procs.Lines(tidied), p.output())
					procs.TooLate(t, begun, "the command has not tidied up before the rest of its lease was released")
				}
			})
		}
	}
}
