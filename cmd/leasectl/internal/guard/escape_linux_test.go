package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/suites"
)

func TestTheEndOfTheCommandKillsWhatItLeft(t *testing.T) {
	mark := newMark(t)
	self, err := os.Executable()
	must(t, err)
	// One stays in the group, one is a daemon; both ignore SIGTERM.
	p := run(t, mark, time.Hour, time.Minute, "/bin/sh", "-c",
		`trap "" TERM; sleep 1000 & "$0" `+helperArg+` start sleep 1000 || exit 1; exit 7`, self)
	wantStatus(t, p, Status{Code: 7, Reason: Exited})
	if left := carriers(mark); len(left) > 0 {
		t.Errorf("still there when Wait returned: %v", left)
	}
}

func TestCommandsThatForkWithoutEndAreKilled(t *testing.T) {
	hop := filepath.Join(t.TempDir(), "hop")
	// Each process starts the next one, in a new session, and ends; none of
	// them lives longer than a few milliseconds.
	must(t, os.WriteFile(hop, []byte("#!/bin/sh\nsetsid \"$0\" &\n"), 0o755))
	tests := []struct {
		name    string
		command []string
		least   int
	}{
		{"in its group", []string{"/bin/sh", "-c", "while :; do sleep 1000 & done"}, 50},
		{"in sessions of their own", []string{"/proc/self/exe", helperArg, "bomb"}, 50},
		{"in a chain of short lives", []string{"/bin/sh", "-c", `"$0"; exec sleep 1000`, hop}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.least == 2 {
				suites.Prove(t, "it waits until it meets two that live for milliseconds")
			}
			if _, err := exec.LookPath("setsid"); err != nil && tt.least == 2 {
				t.Skip("needs setsid(1)")
			}
			mark := newMark(t)
			p := run(t, mark, time.Hour, 0, tt.command...)
			most := 0
			procs.Eventually(t, "there are many processes", func() bool {
				most = max(most, len(carriers(mark)))
				return most >= tt.least
			})
			start := Boottime()
			if err := p.Kill(); err != nil {
				t.Fatalf("Kill() = %v", err)
			}
			wantStatus(t, p, killedBy9.because(Killed))
			took := Boottime() - start
			if left := carriers(mark); len(left) > 0 {
				t.Errorf("%d processes are left when Wait returns", len(left))
			}
			procs.Within(t, "from Kill to the end of all", took, 5*time.Second)
		})
	}
}

// startSleep starts a child that sleeps, without a guard.
func startSleep(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestChildrenAreFoundWithAndWithoutTheKernelsList(t *testing.T) {
	var want []int
	for range 3 {
		want = append(want, startSleep(t).Process.Pid)
	}
	for name, find := range map[string]func(int) []int{"listed": listedChildren, "scanned": scannedChildren} {
		if name == "listed" && !listsChildren() {
			continue
		}
		got := find(os.Getpid())
		for _, pid := range want {
			if !slices.Contains(got, pid) {
				t.Errorf("%s children = %v, want %d among them", name, got, pid)
			}
		}
	}
}

func TestAStrangerIsNotKilled(t *testing.T) {
	cmd := startSleep(t)
	// As if the number had been used anew since it was found below process 1.
	if err := killIf(process{pid: cmd.Process.Pid}, func(p process) bool { return p.parent == 1 }); err != syscall.ESRCH {
		t.Errorf("killIf(stranger) = %v, want %v", err, syscall.ESRCH)
	}
	if p, ok := stat(cmd.Process.Pid); !ok || p.dead() {
		t.Errorf("stat(stranger) = %+v, %v, want it alive", p, ok)
	}
	if err := killIf(process{pid: cmd.Process.Pid}, func(p process) bool { return p.parent == os.Getpid() }); err != nil {
		t.Errorf("killIf(child) = %v", err)
	}
	err := cmd.Wait()
	if err == nil || err.Error() != "signal: killed" {
		t.Errorf("Wait() of the child = %v, want signal: killed", err)
	}
}
