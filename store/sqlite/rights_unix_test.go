//go:build unix

package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// nobody is the user that a test run by root plays: root may do everything.
const nobody = 65534

func TestMissingRightsAreSaidPlainly(t *testing.T) {
	for name, c := range map[string]struct {
		dir, file os.FileMode // 0 for no file
		says      string
	}{
		"no right to create the file":     {0o555, 0, "no right to write in "},
		"no right to write the file":      {0o777, 0o444, "the process must be able to write the file"},
		"no right to the file":            {0o777, 0o200, "no right to read and write the file"},
		"no right to enter the directory": {0o600, 0o666, "permission denied"},
		"no right to write the directory": {0o555, 0o666, "able to write the file and its directory"},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "in")
			path := filepath.Join(dir, "ledger.db")
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) // or a user other than root can't remove it
			must(t, "Mkdir()", os.Mkdir(dir, 0o700))
			if c.file != 0 {
				copied(t, path)
				chmod(t, path, c.file)
			}
			chmod(t, dir, c.dir)
			worker := spawn(t, "create", path, "job", 0)
			worker.startAsNobody(t, top)
			said := func() string { _ = worker.cmd.Wait(); return worker.errors.String() }()
			if !strings.Contains(said, store.ErrDenied.Error()) || !strings.Contains(said, c.says) || strings.Count(said, "\n") != 1 {
				t.Errorf("a worker without rights said %q, want one line with %q and %q", said, store.ErrDenied, c.says)
			}
		})
	}
}

func TestALedgerIsReadWithoutTheRightToWrite(t *testing.T) {
	for name, c := range map[string]struct{ dir, file os.FileMode }{
		"neither the file nor its directory": {0o555, 0o444},
		"the file but not its directory":     {0o555, 0o666},
		"the directory but not the file":     {0o777, 0o444},
	} {
		for state, prepare := range map[string]func(t *testing.T, path string){
			"at rest": func(*testing.T, string) {},
			"in use": func(t *testing.T, path string) {
				t.Helper()
				must(t, "Append()", open(t, Options{Path: path}).Append(t.Context(), storetest.Grant("job", 31)))
			},
			"left by a process that was killed": func(t *testing.T, path string) {
				t.Helper()
				c := spawn(t, "crash", path, "job", 31)
				c.begin(t)
				if err := c.cmd.Wait(); err == nil {
					t.Fatal("the child ended well, want it killed")
				}
			},
		} {
			t.Run(name+", "+state, func(t *testing.T) {
				top := t.TempDir()
				dir := filepath.Join(top, "in")
				path := filepath.Join(dir, "ledger.db")
				must(t, "Mkdir()", os.Mkdir(dir, 0o700))
				copied(t, path)
				prepare(t, path)
				t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) // before what prepare opened is closed
				last := 30
				if state != "at rest" {
					last = 31
				}
				for p := range listing(t, dir) {
					chmod(t, filepath.Join(dir, p), c.file)
				}
				chmod(t, dir, c.dir)
				before := listing(t, dir)
				reader := spawn(t, "follow", path, "job", last)
				reader.startAsNobody(t, top)
				if err := reader.cmd.Wait(); err != nil {
					t.Fatalf("the reader: %v: %s", err, reader.errors.String())
				}
				if got := reader.out.String(); got != fmt.Sprintln(last) {
					t.Errorf("the reader read the heads %q, want %d", got, last)
				}
				after := listing(t, dir)
				if state != "at rest" { // the file of locks notes who reads
					delete(before, "ledger.db-shm")
					delete(after, "ledger.db-shm")
				}
				sameListing(t, "the reader", after, before)
			})
		}
	}
}

func TestALogWithoutItsOtherFileIsNotReadWithoutTheRightToWrite(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the owner of the file may write it: run as root")
	}
	top := t.TempDir()
	path := filepath.Join(top, "ledger.db")
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	copied := filepath.Join(top, "copy.db")
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + suffix)
		must(t, "ReadFile()", err)
		must(t, "WriteFile()", os.WriteFile(copied+suffix, b, 0o644))
	}
	reader := spawn(t, "glance", copied, "job", 1)
	reader.startAsNobody(t, top)
	err := reader.cmd.Wait()
	if said := reader.errors.String(); err == nil || !strings.Contains(said, store.ErrDenied.Error()) || !strings.Contains(said, "-shm file can't be read") {
		t.Errorf("a reader of a copy without its -shm file said %q, %v, want %q", said, err, store.ErrDenied)
	}
	if _, err := os.Stat(copied + "-shm"); !os.IsNotExist(err) {
		t.Errorf("the reader made a -shm file: %v", err)
	}
}

func TestAReaderWithoutTheRightToWriteSeesWhatIsAppended(t *testing.T) {
	const rounds = 20
	top := t.TempDir()
	chmod(t, top, 0o755)
	path := filepath.Join(top, "ledger.db")
	copied(t, path)
	chmod(t, path, 0o644)
	if os.Getuid() != 0 {
		t.Skip("the owner of the file may write it: run as root")
	}
	reader := spawn(t, "follow", path, "job", 30+rounds)
	reader.startAsNobody(t, top)
	for seq := int64(31); seq <= 30+rounds; seq++ {
		// Every other time as the last that has it open, so that the log goes.
		l, err := Open(t.Context(), Options{Path: path})
		must(t, "Open()", err)
		if err := l.Append(t.Context(), storetest.Grant("job", seq)); err != nil {
			t.Fatalf("Append(%d) = %v", seq, err)
		}
		must(t, "Close()", l.Close(t.Context()))
		time.Sleep(5 * time.Millisecond)
	}
	if err := reader.cmd.Wait(); err != nil {
		t.Fatalf("the reader: %v: %s", err, reader.errors.String())
	}
	t.Logf("the reader saw %s", strings.Fields(reader.out.String()))
}

// startAsNobody starts the process as a user that has the rights of others. A user
// other than root has no more than its own.
func (c *child) startAsNobody(t *testing.T, top string) {
	t.Helper()
	chmod(t, top, 0o755)
	chmod(t, filepath.Dir(top), 0o755)
	if os.Getuid() == 0 {
		c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		c.cmd.Path = reachable(t, top, c.cmd.Path)
	}
	c.begin(t)
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must(t, "Chmod()", os.Chmod(path, mode))
}

// reachable links the test binary to where another user can run it.
func reachable(t *testing.T, dir, binary string) string {
	t.Helper()
	b, err := os.ReadFile(binary)
	must(t, "ReadFile()", err)
	name := filepath.Join(dir, "worker")
	must(t, "WriteFile()", os.WriteFile(name, b, 0o755))
	return name
}
