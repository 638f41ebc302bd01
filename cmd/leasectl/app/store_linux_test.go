package app

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

// A password manager may wait for somebody, and a mistyped pipe for ever.
func TestASignalEndsTheWaitForAStoreFileThatIsAPipe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code int
		args []string
	}{
		{exit.OK, []string{"run", "--worker-type", "t", "--every", "1s", "--", "true"}},
		{exit.Interrupted, []string{"run", "--once", "--worker-type", "t", "--every", "1s", "--", "true"}},
		{exit.Interrupted, []string{"status"}},
	} {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		p := start(t, append([]string{c.args[0], "--store-file", path}, c.args[1:]...)...)
		w, err := os.OpenFile(path, os.O_WRONLY, 0) // It waits for the reader.
		must(t, err)
		p.signal(syscall.SIGTERM)
		if code := p.wait(); code != c.code || p.output() != "" {
			t.Errorf("leasectl %q = %d, %q, want the code %d alone", c.args, code, p.output(), c.code)
		}
		_ = w.Close()
	}
}
