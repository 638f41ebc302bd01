//go:build unix

package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/store"
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
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if c.file != 0 {
				b, err := os.ReadFile(grown(t))
				if err != nil {
					t.Fatal(err)
				}
				content(b)(t, path)
				if err := os.Chmod(path, c.file); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range []struct {
				path string
				mode os.FileMode
			}{{dir, c.dir}, {top, 0o755}, {filepath.Dir(top), 0o755}} {
				if err := os.Chmod(m.path, m.mode); err != nil {
					t.Fatal(err)
				}
			}
			worker := spawn(t, "create", path, "job", 0)
			if os.Getuid() == 0 {
				worker.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
				worker.cmd.Path = reachable(t, top, worker.cmd.Path)
			}
			if err := worker.cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = worker.start.Close()
			said := func() string { _ = worker.cmd.Wait(); return worker.errors.String() }()
			if !strings.Contains(said, store.ErrDenied.Error()) || !strings.Contains(said, c.says) || strings.Count(said, "\n") != 1 {
				t.Errorf("a worker without rights said %q, want one line with %q and %q", said, store.ErrDenied, c.says)
			}
		})
	}
}

// reachable links the test binary to where another user can run it.
func reachable(t *testing.T, dir, binary string) string {
	t.Helper()
	b, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "worker")
	if err := os.WriteFile(name, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}
