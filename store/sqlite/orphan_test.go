package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// A file was moved after a crash, without the log that has its newest records. Nobody makes another in its place, which would
// remove the log, until the file is back: then all records are there.
func TestALogWhoseFileIsGoneIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(path string) error{
		"moved": func(path string) error { return os.Rename(path, path+".moved") },
		"emptied": func(path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.WriteFile(path, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "leases.db")
			l, err := Open(t.Context(), Options{Path: path})
			if err == nil {
				err = errors.Join(l.Init(t.Context()), l.Append(t.Context(), storetest.Grant("job", 1)))
			}
			if err != nil {
				t.Fatal(err)
			}
			log, err := os.ReadFile(path + "-wal")
			if err != nil || len(log) == 0 {
				t.Fatalf("a log of %d bytes, %v, want some", len(log), err)
			}
			file, err := os.ReadFile(path)
			if err = errors.Join(err, l.Close(t.Context())); err != nil {
				t.Fatal(err)
			}
			// As a crash leaves them: the end of the last handle has written the log into the file.
			if err := errors.Join(os.WriteFile(path, file, 0o600), os.WriteFile(path+"-wal", log, 0o600), gone(path)); err != nil {
				t.Fatal(err)
			}
			for _, o := range []Options{{Path: path}, {Path: path, ReadOnly: true}} {
				if l, err := Open(t.Context(), o); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), path+"-wal") {
					t.Errorf("Open(ReadOnly: %v) = %v, %v, want that it is refused for the log", o.ReadOnly, l, err)
				}
			}
			if err := os.Rename(path+".moved", path); err != nil {
				t.Fatal(err)
			}
			if err := orphaned(path); err != nil { // as for one who looked while another process was making the file
				t.Errorf("orphaned() beside its file = %v", err)
			}
			l, err = Open(t.Context(), Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close(t.Context()) }()
			if records, _, err := l.Tail(t.Context(), "job", 2); len(records) != 1 || err != nil {
				t.Errorf("Tail() after the file is back = %d records, %v, want 1", len(records), err)
			}
		})
	}
}
