package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestAReaderThatMayWriteTheDirectoryAloneCreatesNoFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the owner of the file may write it: run as root")
	}
	const rounds = 60
	top, dir, path := place(t)
	copied(t, path)
	chmod(t, path, 0o644)
	chmod(t, dir, 0o777)
	reader := asNobody(t, top, "visit", path, 30+rounds)
	oneByOne(t, path, 30+rounds, time.Millisecond, func() {
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
	})
	reader.end(t)
	t.Logf("visits: %s", reader.out.String())
}
