package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// As in leasectl … | head: a process that SIGPIPE ends closes no store.
func TestACommandWhoseReaderHasGoneEndsInOrder(t *testing.T) {
	storeArg := wrongClock(t, 0, recordtest.Grant(1, 0, "a"))
	dir := filepath.Dir(strings.TrimPrefix(storeArg, "sqlite:"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"inspect", "slots", "--store", storeArg},
		{"inspect", "slots", "--store", storeArg, "--output", "json"},
		{"inspect", "slots", "--store", storeArg, "--watch"},
		{"inspect", "slots", "--store", storeArg, "--watch", "--output", "json"},
		{"__complete", "inspect", "slots", "--store", storeArg, "--worker-type", ""},
		{"init", "--store", storeArg},
		{"plan", "--store", "mongo", "--every", "5m"},
		{"version"},
		{"run", "--help"},
		{"help", "exit-codes"},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		var stderr strings.Builder
		cmd := exec.CommandContext(t.Context(), self, args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asLeasectl+"=1"), w, &stderr
		_ = cmd.Run() // its code says more
		_ = w.Close()
		if code := cmd.ProcessState.ExitCode(); code != exit.Unread || strings.Contains(stderr.String(), "leasectl:") {
			t.Errorf("leasectl %q ends with %v, %q, want the code %d and no error", args, cmd.ProcessState, stderr.String(), exit.Unread)
		}
		if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 1 {
			t.Fatalf("leasectl %q leaves %q, %v, want the ledger alone", args, files, err)
		}
	}
}

func TestRunReleasesItsLeaseWhenNobodyReadsItsLog(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			p := start(t, "run", "--store", storeArg, "--worker-type", "t", "--every", "2s", "--continuous", "--instance-id", "a", "-v", "--log-format", format, "--", "sh", "-c", "echo working; exec sleep 1000")
			p.await("working")
			p.unread()
			if code := p.wait(); code != exit.Unread {
				t.Errorf("leasectl run whose log nobody reads ends with %v, want the code %d", p.cmd.ProcessState, exit.Unread)
			}
			p.gone()
			if all := records(t, l); !slices.ContainsFunc(all, func(r store.Record) bool { return r.Kind == store.KindRelease && r.InstanceID == "a" }) {
				t.Errorf("the ledger has %+v, want a release", all)
			}
		})
	}
}

// As of a terminal after Ctrl-S, or a log shipper that hangs: leasing goes on, and one signal ends it.
func TestRunGoesOnWhileItsLogIsFull(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	for filled := 0; filled == 0; { // as much as it takes
		_ = w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)) // realtime: too late, it is tried again
		filled, _ = w.Write(make([]byte, 1<<20))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	cmd := exec.Command(self, "run", "--store", storeArg, "--worker-type", "t", "--every", "1s", "-v", "--", "sh", "-c", "echo $LEASE_SLOT_START >> "+ran)
	cmd.Env, cmd.Stderr = append(os.Environ(), asLeasectl+"=1"), w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	defer func() { _ = cmd.Process.Kill() }()
	procs.Eventually(t, "the third slot", func() bool {
		b, _ := os.ReadFile(ran)
		return strings.Count(string(b), "\n") >= 3
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	began := time.Now() // realtime: make prove judges it
	if err := cmd.Wait(); err != nil {
		t.Errorf("leasectl run whose log is full ends with %v after SIGTERM, want the code 0", err)
	}
	procs.Within(t, "from SIGTERM to the end", time.Since(began), 3*time.Second) // realtime: as above
}
