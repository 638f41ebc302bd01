package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// A store that dies while a command runs once changes nothing of a plain command: its exit code is leasectl's. A job that has
// ended well, but can't be recorded as done, may be run again: that is no success, and the exit code and one line say
// what is wrong with the store. With a lease that is to be extended, the command ends in time.
func TestTheStoreDiesUnderWhatRunsOnce(t *testing.T) {
	for name, store := range map[string]struct {
		open func(t *testing.T) (uri string, die func())
		code int
		says string // of the store
	}{
		"a MongoDB server that is killed": {func(t *testing.T) (string, func()) {
			t.Helper()
			peer := mongopeer.Start(t)
			return initialised(t, peer.URI()+"jobs"), peer.Kill
		}, exit.Unreachable, "mongo: "},
		"a MongoDB server that hangs": {func(t *testing.T) (string, func()) {
			t.Helper()
			peer := mongopeer.Start(t)
			return initialised(t, peer.URI()+"jobs"), peer.Pause
		}, exit.Unreachable, "mongo: "},
		"a SQLite file that is removed": {func(t *testing.T) (string, func()) {
			t.Helper()
			_, uri := newLedger(t)
			return uri, func() { _ = os.Remove(strings.TrimPrefix(uri, "sqlite:")) }
		}, exit.Missing, "leases.db was removed: stop all workers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uri, die := store.open(t)
			tests := map[string]struct {
				flags  []string
				script string
				code   int
				told   string
			}{
				"command": {nil, "exit 7", 7, "WARN  not released: "},
				"failing": {[]string{"--once-per-slot"}, "exit 7", 7, "WARN  not released: "},
				"job":     {[]string{"--once-per-slot"}, "exit 0", store.code, "\nleasectl: the command ended with exit code 0, but may not be recorded as done, and the slot may be run again: "},
				"short":   {[]string{"--failover-within", "4s"}, "sleep 1000", 128 + 15, "stopped at the deadline"},
			}
			file := filepath.Join(t.TempDir(), "go")
			ps := map[string]*process{}
			for kind, test := range tests {
				args := append([]string{"run", "--once", "--store", uri, "--worker-type", kind, "--every", oneSlot}, test.flags...)
				ps[kind] = start(t, append(args, "--", "sh", "-c", `sleep 1000 & while [ ! -e "$0" ]; do sleep 0.02; done; `+test.script, file)...)
			}
			for _, p := range ps {
				p.await("command started")
			}
			die()
			must(t, os.WriteFile(file, nil, 0o600))
			begun := time.Now()
			for kind, test := range tests {
				p := ps[kind]
				got, out := p.wait(), p.output()
				if got != test.code || strings.Count(out, test.told) != 1 || !strings.Contains(out, store.says) {
					t.Errorf("%s ended with %d, want %d, %q once, and %q", kind, got, test.code, test.told, store.says)
				}
				if strings.Contains(out, "; leasectl ends ") {
					t.Errorf("%s says that leasectl ends for the store, want that it ends with its command", kind)
				}
				_, last, failed := strings.Cut(out, "\nleasectl: ")
				if failed != (kind == "job") || failed && (!strings.Contains(last, store.says) || strings.Count(last, "\n") > 2 || strings.Contains(last, "leasectl: ")) {
					t.Errorf("%s says %q at last, want one line about the store and one of what to try, for a job alone", kind, last)
				}
				if left := p.descendants(); len(left) > 0 {
					t.Errorf("%s left behind: %v", kind, left)
				}
			}
			procs.Within(t, "from the store's death to the end of all", time.Since(begun), 20*time.Second)
		})
	}
}

// initialised is a store after leasectl init.
func initialised(t *testing.T, uri string) string {
	t.Helper()
	mustRun(t, nil, "init", "--store", uri)
	return uri
}
