package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// setKind sets a number whose size depends on the machine.
func setKind[T int32 | int64 | uint32](to *T, kind uint32) { *to = T(kind) }

// on makes all files be on a file system of a type.
func on(t *testing.T, kind uint32) {
	t.Helper()
	t.Cleanup(func() { statfs = unix.Statfs })
	statfs = func(path string, s *unix.Statfs_t) error {
		err := unix.Statfs(path, s)
		setKind(&s.Type, kind)
		return err
	}
}

func TestFileSystemsThatMachinesShareAreRefused(t *testing.T) {
	path, next := grown(t), int64(31)
	for name, kind := range map[string]uint32{
		"NFS": 0x6969, "SMB (CIFS)": 0xff534d42, "SMB": 0xfe534d42, "FUSE": 0x65735546, "9p": 0x01021997, "Ceph": 0x00c36400,
		"AFS": 0x5346414f, "Lustre": 0x0bd00bd0, "GFS2": 0x01161970, "OCFS2": 0x7461636f,
		"OrangeFS": 0x20030528, "PanFS": 0xaad7aaea, "StorNext": 0xbeefdead, "ACFS": 0x61636673, "VxFS": 0xa501fcf5,
		"Parallels shared folders": 0x7c7c6673, "eCryptfs": 0xf15f,
	} {
		t.Run(name, func(t *testing.T) {
			missing := filepath.Join(t.TempDir(), "new.db")
			on(t, kind)
			for _, path := range []string{missing, path} {
				for _, readOnly := range []bool{false, true} {
					err := documenttest.ErrorOf(Open(t.Context(), Options{Path: path, ReadOnly: readOnly}))
					what := fmt.Sprintf("Open(ReadOnly: %v)", readOnly)
					documenttest.Says(t, what, err, store.ErrRefused, path+" is on "+name+",", "use a local disk", "unsafeFileSystem")
					wantErr(t, what, err, ErrUnshared)
				}
			}
			if left := listing(t, filepath.Dir(missing)); len(left) != 0 {
				t.Errorf("Open() left %d files, want none", len(left))
			}
			l := open(t, Options{Path: path, UnsafeFileSystem: true})
			wantErr(t, "Append() with UnsafeFileSystem", l.Append(t.Context(), storetest.Grant("job", next)), nil)
			next++
			must(t, "Close()", l.Close(t.Context()))
		})
	}
	for name, kind := range map[string]uint32{"ext4": unix.EXT4_SUPER_MAGIC, "XFS": unix.XFS_SUPER_MAGIC, "tmpfs": unix.TMPFS_MAGIC, "overlay": unix.OVERLAYFS_SUPER_MAGIC} {
		on(t, kind)
		open(t, Options{Path: filepath.Join(t.TempDir(), name)})
	}
}

// The file is to be created on a network file system, to which symbolic links lead.
func TestLinksToAMissingFileAreFollowedToItsFileSystem(t *testing.T) {
	dir := t.TempDir()
	local, shared := filepath.Join(dir, "local"), filepath.Join(dir, "shared")
	must(t, "MkdirAll()", os.MkdirAll(filepath.Join(shared, "deep"), 0o700))
	must(t, "Mkdir()", os.Mkdir(local, 0o700))
	for name, to := range map[string]string{
		"one": filepath.Join(shared, "ledger.db"), "two": "one", "three": filepath.Join(local, "two"),
		"aside": filepath.Join(shared, "deep"), "up": "aside/../ledger.db",
	} {
		must(t, "Symlink()", os.Symlink(to, filepath.Join(local, name)))
	}
	t.Cleanup(func() { statfs = unix.Statfs })
	statfs = func(path string, s *unix.Statfs_t) error {
		err := unix.Statfs(path, s)
		if to, e := filepath.EvalSymlinks(path); e == nil && strings.HasPrefix(to, shared) {
			setKind(&s.Type, unix.NFS_SUPER_MAGIC)
		}
		return err
	}
	for _, name := range []string{"one", "two", "three", "up"} {
		l, err := Open(t.Context(), Options{Path: filepath.Join(local, name)})
		if err == nil {
			err = l.Init(t.Context())
			_ = l.Close(t.Context())
		}
		documenttest.Says(t, name, err, store.ErrRefused, name+" is on NFS")
		if _, err := os.Stat(filepath.Join(shared, "ledger.db")); err == nil {
			t.Fatalf("%s: a file was made on NFS", name)
		}
	}
}

func TestTheListOfMountsShowsFilesThatAreMounted(t *testing.T) {
	const list = `22 1 252:0 / / rw,relatime - ext4 /dev/root rw
31 22 252:0 /srv/ledger.db /data/my\040ledger.db rw - ext4 /dev/root rw
32 22 252:0 /srv /srv2 rw - ext4 /dev/root rw
`
	for path, want := range map[string]bool{
		"/data/my ledger.db": true, "/data/ledger.db": false, "/srv/ledger.db": false, "/srv2/ledger.db": false, "/srv2": true, "/data": false,
	} {
		if got := listed(strings.NewReader(list), path); got != want {
			t.Errorf("listed(%q) = %v, want %v", path, got, want)
		}
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	must(t, "ReadFile()", err)
	if !listed(strings.NewReader(string(b)), "/proc") || !mounted("/proc") || mounted(grown(t)) {
		t.Error("want /proc mounted, and a new file not")
	}
}

func TestALedgerWithHardLinksIsRefusedAndLeftUntouched(t *testing.T) {
	path := grown(t)
	must(t, "Link()", os.Link(path, path+".link"))
	wantRefused(t, path, "ledger.db has 2 hard links")
	wantRefused(t, path+".link", "ledger.db.link has 2 hard links")
	must(t, "Remove()", os.Remove(path))
	l := open(t, Options{Path: path + ".link"})
	wantErr(t, "Append() by the only name", l.Append(t.Context(), storetest.Grant("job", 31)), nil)
}

func TestASymbolicLinkLeadsToTheSameLog(t *testing.T) {
	path := grown(t)
	link := filepath.Join(t.TempDir(), "link.db")
	must(t, "Symlink()", os.Symlink(path, link))
	l := open(t, Options{Path: path})
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 31)))
	other := hire(t, link)
	wantUnstored(t, "Append() of the same key by a symbolic link", other.appends(t, 31), store.ErrConflict.Error())
	wantStored(t, "Append() of the next key by a symbolic link", other.appends(t, 32))
	// The link to another ledger now.
	must(t, "Remove()", os.Remove(link))
	must(t, "Symlink()", os.Symlink(grown(t), link))
	wantUnstored(t, "Append() after the link was changed", other.appends(t, 33), store.ErrRefused.Error(), "link.db was replaced", "stop all workers")
}

func TestAFullDiskIsFound(t *testing.T) {
	path := grown(t)
	for name, c := range map[string]struct {
		blocks, free uint64
		full         bool
	}{
		"full":                     {1000, 0, true},
		"all but full":             {1000, 15, true},
		"with room":                {1000, 16, false},
		"a system without a count": {0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { statfs = unix.Statfs })
			statfs = func(path string, s *unix.Statfs_t) error {
				err := unix.Statfs(path, s)
				s.Bsize, s.Blocks, s.Bfree, s.Bavail = 4096, c.blocks, c.free, c.free
				return err
			}
			found, err := Examine(t.Context(), Options{Path: path})
			must(t, "Examine()", err)
			if !c.full {
				documenttest.FindsNoMore(t, found)
				return
			}
			documenttest.Finds(t, found, store.CheckAppend, store.LevelFail, fmt.Sprintf("the disk is full: %d bytes are free in %s → free space on that disk", c.free*4096, filepath.Dir(path)))
		})
	}
}
