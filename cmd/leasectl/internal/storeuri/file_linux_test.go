package storeuri

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A secret may come through a pipe, as from a password manager.
func TestTheFileOfAStoreMayBeAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(path, []byte("sqlite:x.db\n"), 0o600) }()
	if got, err := ReadFile(path); err != nil || got != "sqlite:x.db" {
		t.Errorf("ReadFile() of a pipe = %q, %v", got, err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
