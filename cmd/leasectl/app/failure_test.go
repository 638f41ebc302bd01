package app

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

func TestEveryKindOfFailureHasItsExitCode(t *testing.T) {
	for err, want := range map[error]int{
		store.ErrRefused:                 exit.Refused,
		store.ErrDenied:                  exit.Denied,
		fs.ErrPermission:                 exit.Denied,
		store.ErrMissing:                 exit.Missing,
		store.ErrInvalid:                 exit.Usage,
		store.ErrThrottled:               exit.Unreachable,
		&net.DNSError{Err: "no host"}:    exit.Unreachable,
		errors.New("connection refused"): exit.Unreachable,
	} {
		var stderr bytes.Buffer
		a := &app{stderr: &stderr}
		if got := a.report(advice.ForStore(storeuri.Target{Scheme: "mongodb"}, fmt.Errorf("now: %w", err))); got != want {
			t.Errorf("report(advice.ForStore(%v)) = %d, want %d", err, got, want)
		}
		if want := "leasectl: now: " + err.Error() + "\n"; !strings.HasPrefix(stderr.String(), want) {
			t.Errorf("report(advice.ForStore(%v)) wrote %q, want %q first", err, stderr.String(), want)
		}
	}
	if got := (&app{stderr: &bytes.Buffer{}}).report(errors.New("other")); got != exit.Failure {
		t.Errorf("report(other) = %d, want %d", got, exit.Failure)
	}
}

func TestAFileThatIsNoLedgerIsRefusedAndLeftAsItIs(t *testing.T) {
	for name, content := range map[string]string{
		"text":    "do not lose this\n",
		"garbage": "SQLite format 3\x00" + strings.Repeat("garbage ", 600),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "mine")
			want := output{exit.Refused, "", "leasectl: sqlite:" + path + ": store refused: not a SQLite database\ntry: choose another file\n"}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"init"}, {"inspect", "slots"}, {"run", "--worker-type", "t", "--every", "1s", "--", "true"},
			} {
				got := leasectl(t, nil, append([]string{"--store", "sqlite:" + path}, args...)...)
				if got != want {
					t.Errorf("leasectl %v = %+v, want %+v", args, got, want)
				}
				if after, err := os.ReadFile(path); err != nil || string(after) != content {
					t.Errorf("leasectl %v changed the file: %q, %v", args, after, err)
				}
				if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
					t.Errorf("leasectl %v left %v, %v", args, left, err)
				}
			}
		})
	}
}

func TestACorruptLedgerIsRefusedWithSoundAdvice(t *testing.T) {
	l, storeArg := newLedger(t)
	if err := errors.Join(l.Append(t.Context(), recordtest.Grant(1, 0, "a")), l.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	path := strings.TrimPrefix(storeArg, "sqlite:")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096 // the first, which tells what the file is, stays whole
	for i := page; i < len(content); i++ {
		content[i] = 0xa5
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	want := output{exit.Refused, "", "leasectl: " + storeArg + ": store refused: the file is corrupt\ntry: stop all its workers first, then remove it (a new ledger starts)\n"}
	if got := leasectl(t, nil, "inspect", "slots", "--store", storeArg); got != want {
		t.Errorf("leasectl inspect slots = %+v, want %+v", got, want)
	}
}

func TestALedgerThatIsNotThereIsNotCreatedByLooking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	want := "try: leasectl init --store sqlite:" + path + "\n"
	for _, args := range [][]string{{"inspect", "slots"}, {"inspect", "slots", "--watch"}} {
		got := leasectl(t, []string{"LEASECTL_STORE=sqlite:" + path}, args...)
		if got.code != exit.Missing || !strings.HasSuffix(got.stderr, want) {
			t.Errorf("leasectl %v = %d, %q, want %d and %q", args, got.code, got.stderr, exit.Missing, want)
		}
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("leasectl %v made the file: %v", args, err)
		}
	}
}

func TestAServerThatRefusesConnectionsIsUnreachable(t *testing.T) {
	// Nobody listens there, and nobody is given this port by chance.
	const address = "127.0.0.1:1"
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"init", "--timeout", "300ms"}, {"inspect", "slots", "--timeout", "300ms"}} {
		var got output
		// On a busy machine the time may pass before the driver has dialled once.
		procs.Eventually(t, "a connection is refused", func() bool {
			got = leasectl(t, []string{"LEASECTL_STORE=mongodb://" + address + "/jobs"}, args...)
			return strings.Contains(got.stderr, "refused")
		})
		if got.code != exit.Unreachable || !strings.Contains(got.stderr, ": no server found: "+address+": connection refused\n") || !strings.HasSuffix(got.stderr, "try: check that the server runs and that host and port are right\n") {
			t.Errorf("leasectl %v = %d, %q, want %d", args, got.code, got.stderr, exit.Unreachable)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestACommandThatCanNotBeRunIsToldAtTheStart(t *testing.T) {
	_, storeArg := newLedger(t)
	plain := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"no-such-command-anywhere", plain, filepath.Join(t.TempDir(), "nothing")} {
		got := leasectl(t, nil, "run", "--store", storeArg, "--worker-type", "t", "--every", "1s", "--", command)
		if got.code != exit.Command || !strings.HasPrefix(got.stderr, fmt.Sprintf("leasectl: command %q: ", command)) {
			t.Errorf("leasectl run -- %s = %d, %q, want %d", command, got.code, got.stderr, exit.Command)
		}
	}
}

func TestInitSaysWhatItDid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	store := "sqlite:" + path
	for _, want := range []string{
		"created the ledger " + store + "\n",
		"the ledger " + store + " was there already, without records\n",
		"the ledger " + store + " was there already, without records\n",
	} {
		if got := leasectl(t, nil, "init", "--store", store); got != (output{stdout: want}) {
			t.Errorf("leasectl init = %+v, want %q", got, want)
		}
	}
	l, storeArg := newLedger(t)
	if err := l.Append(t.Context(), recordtest.Grant(1, 0, "a")); err != nil {
		t.Fatal(err)
	}
	want := output{stdout: "the ledger " + storeArg + " was there already, with the worker types export\n"}
	if got := leasectl(t, nil, "init", "--store", storeArg); got != want {
		t.Errorf("leasectl init = %+v, want %+v", got, want)
	}
	if got := leasectl(t, nil, "init", "--store", "sqlite:"+filepath.Join(path, "below", "leases.db")); got.code != exit.Unreachable {
		t.Errorf("leasectl init below a file = %+v, want code %d", got, exit.Unreachable)
	}
	dir := filepath.Join(t.TempDir(), "nodir")
	got := leasectl(t, nil, "init", "--store", "sqlite:"+filepath.Join(dir, "leases.db"))
	if want := "try: create the directory " + dir + " first\n"; got.code != exit.Missing || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("leasectl init in a directory that isn't there = %+v, want code %d and %q", got, exit.Missing, want)
	}
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	want = output{stdout: "created the ledger sqlite:" + filepath.Join(here, "x.db") + "\n"}
	if got := leasectl(t, nil, "init", "--store", "sqlite:x.db"); got != want {
		t.Errorf("leasectl init of a relative path = %+v, want %+v", got, want)
	}
}

// full is an output to which nothing can be written.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestOutputThatCanNotBeWrittenIsAFailure(t *testing.T) {
	l, storeArg := newLedger(t)
	if err := l.Append(t.Context(), recordtest.Grant(1, 0, "a")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"version"},
		{"version", "--output", "json"},
		{"--help"},
		{"help", "exit-codes"},
		{"init", "--store", storeArg},
		{"plan", "--store", "mongo", "--every", "5m"},
		{"inspect", "slots", "--store", storeArg, "--output", "json"},
		{"inspect", "slots", "--store", storeArg, "--watch"},
	} {
		var stderr bytes.Buffer
		code := execute(t.Context(), args, nil, strings.NewReader(""), full{}, &stderr)
		const want = "leasectl: the output can't be written: no space left on device\n"
		if code != exit.Failure || !strings.HasSuffix(stderr.String(), want) { // (cobra repeats the reason after help)
			t.Errorf("leasectl %q = %d, %q, want %d, %q", args, code, stderr.String(), exit.Failure, want)
		}
	}
}
