package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestAReaderThatMayWriteTheDirectoryAloneCreatesNoFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the owner of the file may write it: run as root")
	}
	const rounds = 60
	top := t.TempDir()
	dir := filepath.Join(top, "in")
	path := filepath.Join(dir, "ledger.db")
	must(t, "Mkdir()", os.Mkdir(dir, 0o700))
	b, err := os.ReadFile(grown(t))
	must(t, "ReadFile()", err)
	content(b)(t, path)
	chmod(t, path, 0o644)
	chmod(t, dir, 0o777)
	reader := spawn(t, "visit", path, "job", 30+rounds)
	reader.startAsNobody(t, top)
	for seq := int64(31); seq <= 30+rounds; seq++ {
		l, err := Open(t.Context(), Options{Path: path})
		must(t, "Open()", err)
		if err := l.Append(t.Context(), storetest.Grant("job", seq)); err != nil {
			t.Fatalf("Append(%d) = %v", seq, err)
		}
		must(t, "Close()", l.Close(t.Context()))
		time.Sleep(time.Millisecond)
		for _, suffix := range []string{"-wal", "-shm"} {
			info, err := os.Stat(path + suffix)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			must(t, "Stat()", err)
			if owner := info.Sys().(*syscall.Stat_t).Uid; owner == nobody {
				t.Fatalf("the reader created a %s file, want none: workers of another user couldn't write it", suffix)
			}
		}
	}
	if err := reader.cmd.Wait(); err != nil {
		t.Fatalf("the reader: %v: %s", err, reader.errors.String())
	}
	t.Logf("visits: %s", reader.out.String())
}
