package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A report has what commands wrote: a file that others could read is one no more.
func TestAReportIsItsOwnersAloneEvenIfItsFileWasThere(t *testing.T) {
	t.Parallel()
	_, storeArg := newLedger(t)
	file := filepath.Join(t.TempDir(), "r.html")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil { //nolint:gosec // Others may read it: that is what it is about.
		t.Fatal(err)
	}
	got := leasectl(t, nil, "report", "--store", storeArg, "--html", file)
	is, err := os.Stat(file)
	if err != nil || got.code != 0 {
		t.Fatalf("leasectl report = %+v, %v", got, err)
	}
	if mode := is.Mode().Perm(); mode != 0o600 && filepath.Separator == '/' {
		t.Errorf("the file has the mode %v, want %v", mode, fs.FileMode(0o600))
	}
}
