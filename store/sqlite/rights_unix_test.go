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

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// nobody is the user that a test run by root plays: root may do everything.
const nobody = 65534

func TestMissingRightsAreSaidPlainly(t *testing.T) {
	for name, c := range map[string]struct {
		dir, file os.FileMode // 0 for no file
		says      string
	}{
		"no right to create the file":     {0o555, 0, "no right to write "},
		"no right to write the file":      {0o777, 0o444, "the process must be able to write the file"},
		"no right to the file":            {0o777, 0o200, "no right to read and write the file"},
		"no right to enter the directory": {0o600, 0o666, "permission denied"},
		"no right to write the directory": {0o555, 0o666, "no right to write "},
	} {
		t.Run(name, func(t *testing.T) {
			top, dir, path := place(t)
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) }) // or a user other than root can't remove it
			if c.file != 0 {
				copied(t, path)
				chmod(t, path, c.file)
			}
			chmod(t, dir, c.dir)
			worker := asNobody(t, top, "create", path, 0)
			said := func() string { _ = worker.cmd.Wait(); return worker.errors.String() }()
			if !strings.Contains(said, store.ErrDenied.Error()) || !strings.Contains(said, c.says) || strings.Count(said, "\n") != 1 {
				t.Errorf("a worker without rights said %q, want one line with %q and %q", said, store.ErrDenied, c.says)
			}
		})
	}
}

func TestAFileSystemForReadingOnlyIsNoMissingRight(t *testing.T) {
	path := grown(t)
	l := open(t, Options{Path: path})
	db, err := connect(path, "mode=ro")
	must(t, "connect()", err)
	t.Cleanup(func() { _ = db.Close() })
	_, refused := db.ExecContext(t.Context(), "DELETE FROM WorkerLeases")
	kernel := mayWrite
	t.Cleanup(func() { mayWrite = kernel })
	mayWrite = func(string) error { return syscall.EROFS }
	documenttest.Says(t, "explain()", l.explain(t.Context(), refused), store.ErrDenied, "the file system of "+path+" is mounted for reading only")
	wantErr(t, "explain()", l.explain(t.Context(), refused), syscall.EROFS)
	found, err := Examine(t.Context(), Options{Path: path})
	must(t, "Examine()", err)
	documenttest.Finds(t, found, store.CheckAppend, store.LevelFail, "is mounted for reading only → mount it for writing")
	mayWrite = kernel
	documenttest.Says(t, "explain()", l.explain(t.Context(), refused), store.ErrDenied, "the process must be able to write the file")
}

func TestAMissingRightIsFoundByAnExamination(t *testing.T) {
	for name, c := range map[string]struct {
		dir, file os.FileMode
		says      []string
	}{
		"a file that may only be read":      {0o777, 0o444, []string{"fail append-right: no right to write ", "ok read-right", "skip trim-right", "ok ledger", "ok constraints"}},
		"a directory that may only be read": {0o555, 0o666, []string{"fail append-right: no right to write ", "ok read-right", "ok ledger", "ok constraints", "skip journal"}},
		"a file that may not be read":       {0o777, 0o200, []string{"fail append-right: ", "fail read-right: no right to read ", "skip ledger"}},
		"a directory that is closed":        {0o600, 0o666, []string{"fail connection: ", "permission denied", "skip append-right"}},
	} {
		t.Run(name, func(t *testing.T) {
			top, dir, path := place(t)
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
			copied(t, path)
			chmod(t, path, c.file)
			chmod(t, dir, c.dir)
			user := asNobody(t, top, "examine", path, 0)
			if err := user.cmd.Wait(); err != nil {
				t.Errorf("Examine() = %v: %s", err, user.errors.String())
			}
			for _, says := range c.says {
				if !strings.Contains(user.out.String(), says) {
					t.Errorf("Examine() found\n%swant %q", user.out.String(), says)
				}
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
				top, dir, path := place(t)
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
				reader := asNobody(t, top, "follow", path, last)
				reader.end(t)
				documenttest.Equal(t, "the heads that the reader read", reader.out.String(), fmt.Sprintln(last))
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

// The rights of the copy are the ledger's, and nobody else may read it before.
func TestALedgerIsCopiedWithoutTheRightToWriteIt(t *testing.T) {
	for _, mode := range []os.FileMode{0o444, 0o404, 0o644} {
		top, dir, path := place(t)
		copied(t, path)
		chmod(t, path, mode)
		chmod(t, dir, 0o777)
		worker := asNobody(t, top, "copy", path, 0)
		worker.end(t)
		info, err := os.Stat(path + ".copy")
		must(t, "Stat()", err)
		documenttest.Equal(t, "rights of the copy", info.Mode().Perm(), mode)
		documenttest.Equal(t, "the newest record of the copy", asked[int](t, path+".copy", "SELECT max(seq) FROM WorkerLeases"), 30)
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
		content(contentOf(t, path+suffix))(t, copied+suffix)
		chmod(t, copied+suffix, 0o644)
	}
	reader := asNobody(t, top, "glance", copied, 1)
	err := reader.cmd.Wait()
	if said := reader.errors.String(); err == nil || !strings.Contains(said, store.ErrDenied.Error()) || !strings.Contains(said, "-shm file can't be read, because it is missing") || !strings.Contains(said, "look at the ledger once as its owner, or, if no worker uses it, copy copy.db and copy.db-wal into a directory that you may write") || strings.Contains(said, "was changed") {
		t.Errorf("a reader of a copy without its -shm file said %q, %v, want %q", said, err, store.ErrDenied)
	}
	if _, err := os.Stat(copied + "-shm"); !os.IsNotExist(err) {
		t.Errorf("the reader made a -shm file: %v", err)
	}
}

func TestAReaderWithoutTheRightToWriteSeesWhatIsAppended(t *testing.T) {
	suites.RealTime(t)
	const rounds = 20
	top := t.TempDir()
	chmod(t, top, 0o755)
	path := filepath.Join(top, "ledger.db")
	copied(t, path)
	chmod(t, path, 0o644)
	if os.Getuid() != 0 {
		t.Skip("the owner of the file may write it: run as root")
	}
	reader := asNobody(t, top, "follow", path, 30+rounds)
	oneByOne(t, path, 30+rounds, 5*time.Millisecond, func() {})
	reader.end(t)
	t.Logf("the reader saw %s", strings.Fields(reader.out.String()))
}

// place makes a folder for a ledger in one that others may enter.
func place(t *testing.T) (top, dir, path string) {
	t.Helper()
	top = t.TempDir()
	dir = filepath.Join(top, "in")
	must(t, "Mkdir()", os.Mkdir(dir, 0o700))
	return top, dir, filepath.Join(dir, "ledger.db")
}

// asNobody starts a process as a user that has the rights of others. A user other than
// root has no more than its own.
func asNobody(t *testing.T, top, role, path string, rounds int) *child {
	t.Helper()
	chmod(t, top, 0o755)
	chmod(t, filepath.Dir(top), 0o755)
	c := spawn(t, role, path, "job", rounds)
	if os.Getuid() == 0 {
		c.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		// The test binary, where another user can run it.
		b := contentOf(t, c.cmd.Path)
		c.cmd.Path = filepath.Join(top, "worker")
		must(t, "WriteFile()", os.WriteFile(c.cmd.Path, b, 0o755))
	}
	c.begin(t)
	return c
}

// oneByOne appends the records above 30. Each time the handle is the last that has the
// file open, so that the log goes.
func oneByOne(t *testing.T, path string, last int64, pause time.Duration, check func()) {
	t.Helper()
	for seq := int64(31); seq <= last; seq++ {
		l, err := Open(t.Context(), Options{Path: path})
		must(t, "Open()", err)
		must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", seq)))
		must(t, "Close()", l.Close(t.Context()))
		time.Sleep(pause)
		check()
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must(t, "Chmod()", os.Chmod(path, mode))
}
