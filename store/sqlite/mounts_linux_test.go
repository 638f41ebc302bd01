package sqlite

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
)

// container is a command that runs another in a mount namespace of its own, where
// something is mounted at a second place. It skips where the machine allows none.
func container(t *testing.T, from, at string) []string {
	t.Helper()
	args := []string{"unshare", "-rm", "sh", "-c", `mount --bind "$0" "$1" && shift && exec "$@"`, from, at}
	if out, err := exec.CommandContext(t.Context(), args[0], append(args[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("the machine allows no mounts: %v: %s", err, out)
	}
	return args
}

func TestAFileThatIsMountedByItselfIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	outside := hire(t, path)
	wantStored(t, "Append() outside", outside.appends(t, 1))
	for i := range 2 {
		inside := filepath.Join(t.TempDir(), "data.db")
		content(nil)(t, inside)
		said := hire(t, inside, container(t, path, inside)...).appends(t, 2)
		wantUnstored(t, fmt.Sprintf("Append() in container %d", i), said,
			store.ErrRefused.Error(), inside+" is itself a mount point", "mount its directory, not the file")
		if strings.Contains(said, "\n") {
			t.Errorf("Append() = %q, want one line", said)
		}
		if left := listing(t, filepath.Dir(inside)); len(left) != 1 {
			t.Errorf("the refused worker left %d files, want the mounted one alone", len(left))
		}
	}
	wantStored(t, "Append() outside", outside.appends(t, 2))
}

func TestContainersThatMountTheDirectoryShareTheLedger(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ledger.db")
	outside := hire(t, path)
	wantStored(t, "Append() outside", outside.appends(t, 1))
	var inside []*clerk
	for range 2 {
		at := t.TempDir()
		inside = append(inside, hire(t, filepath.Join(at, "ledger.db"), container(t, dir, at)...))
	}
	wantStored(t, "Append() in a container", inside[0].appends(t, 2))
	wantUnstored(t, "Append() of the same key in another", inside[1].appends(t, 2), store.ErrConflict.Error())
	wantUnstored(t, "Append() of the same key outside", outside.appends(t, 2), store.ErrConflict.Error())
	wantStored(t, "Append() in another", inside[1].appends(t, 3))
	for _, c := range append(inside, outside) {
		c.end()
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("all have closed the ledger, and %v is left (%v), want the file alone", left, err)
	}
}
