package supervise

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/transcript"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// stopGuard stops the next guard of this process as soon as there is one. No other test runs one meanwhile.
func stopGuard(until <-chan struct{}) {
	for {
		lists, _ := filepath.Glob("/proc/self/task/*/children")
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			for _, name := range strings.Fields(string(text)) {
				pid, _ := strconv.Atoi(name)
				if line, _ := os.ReadFile(filepath.Join("/proc", name, "cmdline")); string(line) == "lease guard\x00" && syscall.Kill(pid, syscall.SIGSTOP) == nil {
					return
				}
			}
		}
		select {
		case <-until:
			return
		default:
		}
	}
}

// What a command wrote that was killed before it was known to run is told of that run, and not of the next one.
func TestTheOutputOfACommandThatWasNotKnownToRunIsItsOwn(t *testing.T) {
	suites.RealTime(t)
	const wrote = "half of it\n"
	j := &job{
		pacing: pacingOf(t, workerlease.Options{}, 5*time.Second, 0), news: make(chan event.Lease, 1), kept: newKept(),
		Command: Command{
			Name: "/bin/sleep", Args: []string{"1000"}, Env: os.Environ(), Stdout: io.Discard, Stderr: io.Discard,
			Output: transcript.New(transcript.Tail, nil), Log: runlog.New(runlog.Options{To: io.Discard, Level: zapcore.ErrorLevel}),
		},
	}
	client := workerlease.NewClient(memory.New(memory.Options{}), workerlease.ClientOptions{})
	claim, err := client.TryClaim(t.Context(), j.Options)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(j.Output.Stdout(), wrote) // It may be that fast.
	over := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() { stopGuard(over) })
	e := j.under(t.Context(), &claim.Lease)
	close(over)
	looking.Wait()
	if !errors.Is(e.err, guard.ErrUnsaid) {
		t.Skip("not judged: the guard wasn't stopped before its command ran")
	}
	if got := j.Output.Newest(); got != wrote {
		t.Errorf("the run wrote %q, want %q", got, wrote)
	}
}
