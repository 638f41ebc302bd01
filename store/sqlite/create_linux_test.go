package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
)

// Workers of several users share a ledger by the group of its folder.
func TestANewLedgerHasTheRightsOfTheUmaskAndTheGroupOfItsFolder(t *testing.T) {
	for umask, want := range map[int]os.FileMode{0o002: 0o664, 0o022: 0o644, 0o027: 0o640, 0o077: 0o600} {
		dir, gid := t.TempDir(), os.Getgid()
		if os.Getuid() == 0 {
			gid = 4711
		}
		if err := os.Chown(dir, -1, gid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o775|os.ModeSetgid); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "leases.db")
		before := syscall.Umask(umask)
		l, err := Open(t.Context(), Options{Path: path})
		if err == nil {
			err = l.Append(t.Context(), recordtest.Grant(1, 0, "a"))
		}
		syscall.Umask(before)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Sys().(*syscall.Stat_t); info.Mode().Perm() != want || int(got.Gid) != gid {
				t.Errorf("with the umask %#o, %s has the rights %v and the group %d, want %v and %d", umask, filepath.Base(name), info.Mode(), got.Gid, want, gid)
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
