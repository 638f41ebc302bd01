package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/testutil/storetest"
)

// It runs itself again where a small disk is mounted.
func TestABackupOnAFullDiskLeavesNothingBehindAndNamesTheCopy(t *testing.T) {
	dir := os.Getenv("SLOTLEASE_TEST_DISK")
	if dir == "" {
		command := func(act ...string) *exec.Cmd {
			dir := t.TempDir()
			c := exec.CommandContext(t.Context(), "unshare", append([]string{"-rm", "sh", "-c", `mount -t tmpfs -o size=64k none "$0" && exec "$@"`, dir}, act...)...)
			c.Env = append(os.Environ(), "SLOTLEASE_TEST_DISK="+dir)
			return c
		}
		if out, err := command("true").CombinedOutput(); err != nil {
			t.Skipf("the machine allows no mounts: %v: %s", err, out)
		}
		if out, err := command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v").CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("on a small disk: %v: %s", err, out)
		}
		return
	}
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "ledger.db")})
	for seq := range int64(200) {
		r := storetest.Grant("job", seq+1)
		r.Metadata = strings.Repeat("x", 2000)
		must(t, "Append()", l.Append(t.Context(), r))
	}
	to := filepath.Join(dir, "copy.db")
	err := l.Backup(t.Context(), to)
	if e, ok := errors.AsType[*fs.PathError](err); !ok || e.Path != to {
		t.Errorf("Backup() = %v, want an error of %s", err, to)
	}
	wantOnly(t, dir)
}
