package sqlite

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestWhatALossOfPowerLosesDependsOnTheSystemAndTheFileSystem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		system string
		unsafe bool
		want   string
	}{
		{"linux", false, "All survive, if the disk"},
		{"windows", false, "All survive, if the disk"},
		{"darwin", false, "may keep it in its cache"},
		{"linux", true, "if the file system, which isn't known to"},
		{"darwin", true, "if the file system, which isn't known to"},
	} {
		if got := afterPowerLoss(c.system, c.unsafe); !strings.Contains(got, c.want) {
			t.Errorf("afterPowerLoss(%s, %v) = %q, want %q in it", c.system, c.unsafe, got, c.want)
		}
	}
	l := open(t, Options{Path: filepath.Join(t.TempDir(), "ledger.db"), UnsafeFileSystem: true})
	if got, want := l.Durability().Power, afterPowerLoss(runtime.GOOS, true); got != want {
		t.Errorf("Durability().Power = %q, want %q", got, want)
	}
}
