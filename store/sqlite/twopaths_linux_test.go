package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// Each of these let two processes store the same key, because SQLite names the log
// after the path.
func TestProcessesThatDoNotShareALogNeverStoreTheSameKey(t *testing.T) {
	for name, c := range map[string]struct {
		// disturb makes the second path, after the first worker has appended.
		disturb func(t *testing.T, path string) (second string)
		first   []string // what the first worker says
		second  []string // what the second says, or nil if it may store
	}{
		"a hard link": {
			disturb: func(t *testing.T, path string) string {
				t.Helper()
				other := filepath.Join(t.TempDir(), "other.db")
				must(t, "Link()", os.Link(path, other))
				return other
			},
			first:  []string{store.ErrRefused.Error(), "ledger.db has 2 hard links", "stop all workers"},
			second: []string{store.ErrRefused.Error(), "other.db has 2 hard links", "remove all but one"},
		},
		"a new name while it is in use": {
			disturb: func(t *testing.T, path string) string {
				t.Helper()
				must(t, "Rename()", os.Rename(path, path+".moved"))
				return path + ".moved"
			},
			first:  []string{"ledger.db was removed", "stop all workers"},
			second: []string{store.ErrRefused.Error(), "ledger.db.moved is in use", "-wal", "one path"},
		},
		"another ledger put in its place": {
			disturb: func(t *testing.T, path string) string {
				t.Helper()
				must(t, "Rename()", os.Rename(grown(t), path))
				return path
			},
			first: []string{store.ErrRefused.Error(), "ledger.db was replaced", "stop all workers"},
		},
		"a removed log": {
			disturb: func(t *testing.T, path string) string {
				t.Helper()
				must(t, "Remove()", os.Remove(path+"-wal"))
				return path
			},
			first:  []string{store.ErrRefused.Error(), "ledger.db-wal was re", "stop all workers"},
			second: []string{store.ErrRefused.Error(), "ledger.db is in use", "-wal"},
		},
		"a removed -shm file": {
			disturb: func(t *testing.T, path string) string {
				t.Helper()
				must(t, "Remove()", os.Remove(path+"-shm"))
				return path
			},
			first:  []string{store.ErrRefused.Error(), "ledger.db-shm was re", "stop all workers"},
			second: []string{store.ErrRefused.Error(), "ledger.db is in use", "-shm"},
		},
		"both removed": {
			disturb: func(t *testing.T, path string) string {
				t.Helper()
				must(t, "Remove()", os.Remove(path+"-wal"))
				must(t, "Remove()", os.Remove(path+"-shm"))
				return path
			},
			first:  []string{store.ErrRefused.Error(), "ledger.db-wal was re", "stop all workers"},
			second: []string{store.ErrRefused.Error(), "ledger.db is in use", "-shm"},
		},
		"both replaced by copies": {
			disturb: func(t *testing.T, path string) string {
				t.Helper()
				for _, suffix := range []string{"-wal", "-shm"} {
					content(contentOf(t, path+suffix))(t, path+suffix+".copy")
					must(t, "Rename()", os.Rename(path+suffix+".copy", path+suffix))
				}
				return path
			},
			first:  []string{store.ErrRefused.Error(), "ledger.db-wal was replaced", "stop all workers"},
			second: []string{store.ErrRefused.Error(), "ledger.db is in use", "-shm"},
		},
	} {
		for _, order := range []string{"the first appends first", "the second appends first"} {
			t.Run(name+", "+order, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "ledger.db")
				first := hire(t, path)
				wantStored(t, "first Append()", first.appends(t, 1))
				second := hire(t, c.disturb(t, path))
				var said, replied string
				if order == "the first appends first" {
					said, replied = first.appends(t, 32), second.appends(t, 32)
				} else {
					replied, said = second.appends(t, 32), first.appends(t, 32)
				}
				if said == "stored" && replied == "stored" {
					t.Fatal("both stored the same key")
				}
				wantUnstored(t, "Append() by the first", said, c.first...)
				// Once the first has found out, it has let go of the file.
				if order != "the first appends first" || name == "a hard link" {
					wantUnstored(t, "Append() by the second", replied, c.second...)
				}
				wantUnstored(t, "later Append() by the first", first.appends(t, 33), c.first...)
			})
		}
	}
}
