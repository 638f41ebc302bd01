package sim_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// keptParts is how many parts a run has whose parts are kept.
const keptParts = 200

// kept is a directory with the parts of a run that are over, so that a run of hours which is
// interrupted goes on where it was. The zero value keeps nothing.
type kept struct{ path string }

// newKept is the directory that SLOTLEASE_SIM_KEEP names, for one test in one build with one
// number of seeds and hours.
func newKept(t *testing.T, seeds int64) kept {
	t.Helper()
	dir := os.Getenv("SLOTLEASE_SIM_KEEP")
	if dir == "" {
		return kept{}
	}
	build, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer build.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, build); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%dx%dh-%x", t.Name(), seeds, *hours, sum.Sum(nil)[:6]))
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return kept{path}
}

// parts is into how many parts a run is cut on n processors.
func (k kept) parts(n int64) int64 {
	if k.path == "" {
		return n
	}
	return max(n, keptParts)
}

// shard runs a part, unless it was run before.
func (k kept) shard(t *testing.T, i, n, seeds int64) (tally, error) {
	if k.path == "" {
		return shard(t, i, n, seeds)
	}
	path := filepath.Join(k.path, fmt.Sprintf("%03d.json", i))
	var sum tally
	if b, err := os.ReadFile(path); err == nil {
		return sum, json.Unmarshal(b, &sum)
	}
	sum, err := shard(t, i, n, seeds)
	if err != nil {
		return sum, err
	}
	b, err := json.Marshal(sum)
	if err != nil {
		return sum, err
	}
	if err := os.WriteFile(path+".new", b, 0o644); err != nil {
		return sum, err
	}
	return sum, os.Rename(path+".new", path)
}
