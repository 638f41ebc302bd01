package app

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

// written calls at once a function with what was written.
type written func(text string)

func (w written) Write(b []byte) (int, error) { w(string(b)); return len(b), nil }

// A backup, or a sqlite3 that somebody has forgotten, may have the file locked: a command that waits for that says so while it does.
func TestACommandSaysAtOnceThatTheFileIsLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leases.db")
	env := []string{"LEASECTL_STORE=sqlite:" + path}
	var stdout, stderr bytes.Buffer
	if code := execute(t.Context(), []string{"init"}, env, strings.NewReader(""), &stdout, &stderr); code != exit.OK {
		t.Fatalf("leasectl init = %d: %s", code, &stderr)
	}
	db, err := sql.Open("sqlite", path) // registered by store/sqlite
	must(t, err)
	defer func() { _ = db.Close() }()
	other, err := db.Conn(t.Context())
	must(t, err)
	if _, err := other.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	free := sync.OnceFunc(func() { _, _ = other.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK") })
	defer free()
	said := ""
	// It may be that it gives up before it is told that the file is free.
	execute(t.Context(), []string{"drain", "--host", "vm-1", "--worker-type", "job", "--for", "1h"}, env, strings.NewReader(""), io.Discard, written(func(text string) {
		if said == "" {
			said = text
		}
		free()
	}))
	if want := "leasectl: waiting: " + path + " is locked by another process; fuser -v " + path + " lists those that have it open\n"; said != want {
		t.Errorf("a command that waits for a lock says first %q, want %q", said, want)
	}
}
