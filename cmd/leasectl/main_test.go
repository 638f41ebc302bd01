package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

// asLeasectl in the environment makes the test binary leasectl.
const asLeasectl = "LEASECTL_TEST_MAIN"

func TestMain(m *testing.M) {
	guard.Main()
	if os.Getenv(asLeasectl) != "" {
		main()
	}
	heedSignals()
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		_ = p.Value.Set("8") // Most of the tests wait for processes.
	}
	os.Exit(m.Run())
}

// heedSignals undoes that whoever started the tests ignores signals, as nohup and
// scripts do: every process that the tests start, and signal, would inherit that.
func heedSignals() {
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGHUP} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
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
	return output{code, stdout.String(), stderr.String()}
}

// patience is how long tests wait for what must come, on a machine that is busy.
const patience = 30 * time.Second

// eventually waits until ok, and fails the test if that doesn't come.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// newLedger makes an initialised SQLite ledger and returns it with its --store.
func newLedger(t *testing.T) (store.Ledger, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leases.db")
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l, "sqlite:" + path
}
