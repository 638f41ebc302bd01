package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store/sqlite"
)

func TestRunCreatesALedgerThatIsMissingAsTheLibraryDoes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases.db")
	p := startRun(t, "sqlite:"+path, "a", nil, "sh", "-c", "echo works; sleep 1000")
	p.await("works")
	if want := "creating the ledger sqlite:" + path + "; all workers of the type must use this file"; !strings.Contains(p.output(), want) {
		t.Errorf("leasectl run printed %q, want %q", p.output(), want)
	}
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: path, ReadOnly: true})
	must(t, err)
	defer l.Close(t.Context())
	if len(records(t, l)) == 0 {
		t.Error("the ledger that leasectl run created has no records")
	}

	dir := filepath.Join(t.TempDir(), "nodir")
	got := leasectl(t, nil, "run", "--store", "sqlite:"+filepath.Join(dir, "leases.db"), "--worker-type", "t", "--every", "1s", "--", "true")
	if want := "try: create the directory " + dir + " first\n"; got.code != exit.Missing || !strings.HasSuffix(got.stderr, want) {
		t.Errorf("leasectl run in a directory that is missing = %d, %q, want %d and %q", got.code, got.stderr, exit.Missing, want)
	}
}

func TestInspectNeedsNoRightToWrite(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the owner of the file may write it: run as root")
	}
	l, storeArg := newLedger(t)
	must(t, l.Append(t.Context(), recordtest.Grant(1, 0, "a")))
	path := strings.TrimPrefix(storeArg, "sqlite:")
	dir := filepath.Dir(path)
	for _, d := range []string{dir, filepath.Dir(dir)} {
		must(t, os.Chmod(d, 0o755))
	}
	self, err := os.Executable()
	must(t, err)
	binary, err := os.ReadFile(self)
	must(t, err)
	program := filepath.Join(dir, "leasectl")
	must(t, os.WriteFile(program, binary, 0o755))
	for _, state := range []string{"in use", "at rest"} {
		c := exec.CommandContext(t.Context(), program, "inspect", "slots", "--store", storeArg)
		c.Dir = "/"
		c.Env = append(os.Environ(), asLeasectl+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if got, err := c.CombinedOutput(); err != nil || !strings.Contains(string(got), "ended") {
			t.Errorf("leasectl inspect slots of a ledger %s = %v, %q, want the slot that has ended", state, err, got)
		}
		must(t, l.Close(t.Context()))
	}
}

func TestALedgerThatWorkersMayNotShareIsRefused(t *testing.T) {
	_, storeArg := newLedger(t)
	path := strings.TrimPrefix(storeArg, "sqlite:")
	must(t, os.Link(path, path+".link"))
	for _, args := range [][]string{
		{"init"}, {"inspect", "slots"}, {"run", "--worker-type", "t", "--every", "1s", "--", "true"},
	} {
		got := leasectl(t, []string{"LEASECTL_STORE=" + storeArg + "?unsafeFileSystem=true"}, args...)
		if got.code != exit.Refused || !strings.Contains(got.stderr, path+" has 2 hard links") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("leasectl %v of a file with two links = %d, %q, want %d and one line that says so", args, got.code, got.stderr, exit.Refused)
		}
	}
}

func TestRunLeasesNoMoreWhenItsLedgerMayNotBeShared(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases.db")
	p := startRun(t, "sqlite:"+path, "a", nil, "sh", "-c", "echo works; sleep 1000")
	p.await("works")
	must(t, os.Remove(path+"-wal"))
	p.await("leases.db-wal was removed while in use")
	before := strings.Count(p.output(), ": allocated")
	time.Sleep(2500 * time.Millisecond)
	if after := strings.Count(p.output(), ": allocated"); after != before {
		t.Errorf("leasectl run was granted %d slots after it had found out: %s", after-before, p.output())
	}
	if code := p.wait(); code != exit.Refused || !strings.Contains(p.output(), "\nleasectl: ") {
		t.Errorf("leasectl run = %d, want %d and why", code, exit.Refused)
	}
	if left := p.descendants(); len(left) > 0 {
		t.Errorf("leasectl run left the processes %d", left)
	}
}

// The ledger is not created again: its leases may be in force. Nor does it help to put it back: others may have stored
// the same leases in another file meanwhile.
func TestRunEndsWhenItsLedgerIsRemoved(t *testing.T) {
	for name, back := range map[string]bool{"for good": false, "and put back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "leases.db")
			p := startRun(t, "sqlite:"+path, "a", nil, "sh", "-c", "echo works; sleep 1000")
			p.await("works")
			must(t, os.Rename(path, path+".away"))
			if p.awaitMatch(" was removed: .*; leasectl ends in 10s\n"); back {
				must(t, os.Rename(path+".away", path))
			}
			code := p.wait()
			want := "\ntry: put the ledger back, or a backup of it, before you start workers again: leasectl run creates an empty one otherwise\n"
			if code != exit.Missing || !strings.Contains(p.output(), path+" was removed: stop all workers") || !strings.HasSuffix(p.output(), want) {
				t.Errorf("leasectl run = %d, want %d, that the ledger was removed, and %q", code, exit.Missing, want)
			}
			if _, err := os.Stat(path); (err == nil) != back {
				t.Error("there is a ledger again, want none")
			}
			if left := p.descendants(); len(left) > 0 {
				t.Errorf("leasectl run left the processes %d", left)
			}
		})
	}
}

// A signal that comes before the removal is noticed must not hide it: the lease can't be released.
func TestRunThatIsStoppedSaysThatItsLedgerWasRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases.db")
	p := start(t, "run", "--store", "sqlite:"+path, "--worker-type", "t", "--cron", "0 0 1 1 *", "--failover-within", "1h", "--", "sh", "-c", "echo works; exec sleep 1000")
	p.await("works")
	must(t, os.Remove(path))
	p.signal(syscall.SIGTERM)
	p.exits(exit.Missing)
	for _, want := range []string{path + " was removed: stop all workers", "\nleasectl: stop leasing \"t\": the lease may not have been released", "\ntry: put the ledger back"} {
		if !strings.Contains(p.output(), want) {
			t.Errorf("leasectl run didn't print %q", want)
		}
	}
}

// As of cron, in $HOME, and of systemd, in /: each would have a ledger, and run the job.
func TestOnceWarnsOfANewLedgerThatIsNamedByTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	must(t, err)
	const warning = "WARN  creating the ledger sqlite:"
	for _, c := range []struct {
		path  string
		warns bool
	}{{"leases.db", true}, {"leases.db", false}, {filepath.Join(dir, "other.db"), false}} {
		got := leasectl(t, nil, "run", "--once", "--store", "sqlite:"+c.path, "--worker-type", "t", "--every", oneSlot, "--timeout", "10m", "--log-level", "warn", "--", "true")
		if got.code != exit.OK || strings.Contains(got.stderr, warning+dir+"/leases.db; ") != c.warns || strings.Contains(got.stderr, warning) != c.warns {
			t.Errorf("leasectl run --once with sqlite:%s = %+v, want a warning: %v", c.path, got, c.warns)
		}
	}
}
