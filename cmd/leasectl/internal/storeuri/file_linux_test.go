package storeuri

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A secret may come through a pipe, as from a password manager.
func TestTheFileOfAStoreMayBeAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(path, []byte("sqlite:x.db\n"), 0o600) }()
	if got, err := ReadFile(t.Context(), path); err != nil || got != "sqlite:x.db" {
		t.Errorf("ReadFile() of a pipe = %q, %v", got, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// A pipe that nobody writes holds no signal up, nor one whose writer doesn't close it.
func TestThePipeOfAStoreIsWaitedForUntilAnInterrupt(t *testing.T) {
	interrupted := errors.New("interrupted")
	for name, mode := range map[string]int{"nobody writes": 0, "nobody closes": os.O_RDWR} {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		if mode != 0 {
			w, err := os.OpenFile(path, mode, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = w.Close() }()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(interrupted) })
		if got, err := ReadFile(ctx, path); !errors.Is(err, interrupted) || got != "" {
			t.Errorf("%s: ReadFile() = %q, %v, want the interrupt", name, got, err)
		}
	}
}
