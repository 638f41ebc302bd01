package app

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/internal/signals"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/internal/tmpfs"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

// shellWait is completionWait as users have it.
var shellWait = completionWait

// asLeasectl in the environment makes the test binary leasectl.
const asLeasectl = "LEASECTL_TEST_MAIN"

func TestMain(m *testing.M) {
	completionWait = suites.Limit(10*time.Second, 5*time.Minute)
	defaultTimeout = suites.Limit(defaultTimeout, 5*time.Minute)
	if os.Getenv(asLeasectl) != "" {
		Main()
	}
	signals.Heed()
	procs.Feel()
	tmpfs.Use()
	parallel.Waiting() // for processes
	os.Exit(m.Run())
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// output is what leasectl did.
type output struct {
	code           int
	stdout, stderr string
}

// leasectl runs leasectl in this process.
func leasectl(t *testing.T, env []string, args ...string) output {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), args, env, strings.NewReader(""), &stdout, &stderr)
	return output{code, stdout.String(), stillWaiting.ReplaceAllString(stderr.String(), "")}
}

// stillWaiting is the line that a command writes when a store hasn't answered for some time, as on a busy machine.
var stillWaiting = regexp.MustCompile(`(?m)^leasectl: still waiting for .*\n`)

// inspected is what inspect slots shows as JSON.
func inspected(t *testing.T, env []string, args ...string) (s inspect.Snapshot) {
	t.Helper()
	got := leasectl(t, env, append([]string{"inspect", "slots", "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || got.code != exit.OK || len(s.Slots) == 0 {
		t.Fatalf("leasectl inspect slots %q = %+v, %v, want slots", args, got, err)
	}
	return s
}

// newLedger makes an initialised SQLite ledger and returns it with its --store.
func newLedger(t *testing.T) (store.Ledger, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leases.db")
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	must(t, err)
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	must(t, l.Init(t.Context()))
	return l, "sqlite:" + path
}

// storeTime is the time of the ledger's clock.
func storeTime(t *testing.T, l store.Ledger) time.Time {
	t.Helper()
	s, err := l.Now(t.Context())
	must(t, err)
	return s.Time
}
