package sqlite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/internal/documenttest"
)

func TestTheShiftOfATimeNamespaceIsRead(t *testing.T) {
	for lines, want := range map[string]time.Duration{
		"": 0,
		"monotonic           0         0\nboottime            0         0\n":   0,
		"monotonic          -5         1\nboottime         1000 500000000\n":   1000*time.Second + 500*time.Millisecond,
		"monotonic           0         0\nboottime        -1000 500000000\n":   -1000*time.Second + 500*time.Millisecond,
		"1                   0         0\n7                 86400         0\n": 24 * time.Hour,
	} {
		if got, err := namespaceShift([]byte(lines)); err != nil || got != want {
			t.Errorf("namespaceShift(%q) = %v, %v, want %v", lines, got, err, want)
		}
	}
	if got, err := namespaceShift([]byte("boottime soon")); err == nil {
		t.Errorf("namespaceShift(garbage) = %v, want an error", got)
	}
}

// In a /proc of another PID namespace, /proc/self leads nowhere. An earlier kernel lacks the file alone.
func TestTheTimeNamespaceIsReadOfThisProcessOnly(t *testing.T) {
	self := filepath.Join(t.TempDir(), "self")
	must(t, "Symlink()", os.Symlink("none", self))
	_, err := timeNamespace(self)
	documenttest.Says(t, "of another PID namespace", err, os.ErrNotExist, "mount a /proc of the own PID namespace")
	must(t, "Remove()", os.Remove(self))
	must(t, "Mkdir()", os.Mkdir(self, 0o700))
	shift, err := timeNamespace(self)
	must(t, "of an earlier kernel", err)
	documenttest.Equal(t, "shift", shift, 0)
	must(t, "WriteFile()", os.WriteFile(filepath.Join(self, "timens_offsets"), []byte("boottime 5 0\n"), 0o600))
	must(t, "Mkdir()", os.Mkdir(filepath.Join(self, "ns"), 0o700))
	for _, name := range []string{"time", "time_for_children"} {
		must(t, "Symlink()", os.Symlink("time:[1]", filepath.Join(self, "ns", name)))
	}
	shift, err = timeNamespace(self)
	must(t, "of this kernel", err)
	documenttest.Equal(t, "shift", shift, 5*time.Second)
	// After unshare(2), the offsets are those of children alone.
	must(t, "Remove()", os.Remove(filepath.Join(self, "ns", "time")))
	must(t, "Symlink()", os.Symlink("time:[2]", filepath.Join(self, "ns", "time")))
	_, err = timeNamespace(self)
	documenttest.Says(t, "of children", err, nil, "it is time:[2], and that of children is time:[1]", "unshare --fork")
}

// A worker compares it with readings of its own clock, which is shifted as well.
func TestStampsOfATimeNamespaceNameTheReadingOfItsOwnClock(t *testing.T) {
	const shift = 1000 * time.Second
	under := []string{"unshare", "--map-root-user", "--time", "--boottime", "1000", "--fork"}
	if out, err := exec.CommandContext(t.Context(), under[0], append(under[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("no time namespaces here: %v: %s", err, out)
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	outside := now(t, open(t, Options{Path: path}))
	for _, shifted := range []bool{false, true} {
		c := spawn(t, "time", path, "job", 0)
		want := outside.Time.Sub(time.Unix(0, 0)) - outside.Boottime
		if shifted {
			c.cmd.Path, c.cmd.Args = lookPath(t, under[0]), append(under, c.cmd.Args...)
			want -= shift
		}
		startAll(t, []*child{c})
		var at, before, boottime, after time.Duration
		_, err := fmt.Sscan(c.out.String(), &at, &before, &boottime, &after)
		must(t, "Sscan()", err)
		if boottime < before || boottime > after {
			t.Errorf("shifted: %v: boot time %v, asked for at %v and there at %v", shifted, boottime, before, after)
		}
		if apart := at - boottime - want; apart.Abs() > time.Microsecond {
			t.Errorf("shifted: %v: store time is %v ahead of boot time, want %v", shifted, at-boottime, want)
		}
	}
}

func lookPath(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	must(t, "LookPath()", err)
	return path
}
