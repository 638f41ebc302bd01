package model

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// effort is how a search is built and bounded.
type effort struct {
	optimize string
	compress bool // less memory, more time
	megabyte int
	table    int // the hash table has 2^table places
	depth    int
}

// compiler is tcc for a brief search, if it is there: gcc takes longer than such a search does, even
// if it optimizes nothing.
func (e effort) compiler() string {
	if _, err := exec.LookPath("tcc"); err == nil && e.optimize == "-O0" {
		return "tcc"
	}
	return "gcc"
}

var (
	brief = effort{optimize: "-O0", megabyte: 4000, table: 20, depth: 20_000}
	quick = effort{optimize: "-O0", megabyte: 4000, table: 20, depth: 50_000}
	large = effort{optimize: "-O2", compress: true, megabyte: 8000, table: 24, depth: 500_000}
)

// found is what a search came to.
type found struct {
	complete bool // all states were searched, each by its full contents
	errors   int
	violated string // the assertion
	states   float64
	megabyte float64
	reached  map[string]bool
	took     time.Duration
}

// needSpin skips the test where there is no model checker, unless it must be there.
func needSpin(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("REQUIRE_SPIN") == "1" {
				t.Fatalf("REQUIRE_SPIN=1, but %v", err)
			}
			t.Skipf("the model is not checked: %v", err)
		}
	}
}

// define makes one set of definitions of several, of which later ones win.
func define(definitions ...string) []string {
	values := make(map[string]string)
	for _, d := range definitions {
		for f := range strings.FieldsSeq(d) {
			name, _, _ := strings.Cut(f, "=")
			values[name] = "-D" + f
		}
	}
	return slices.Sorted(maps.Values(values))
}

// search builds the model with the definitions and searches it.
func search(t *testing.T, flags []string, e effort) found {
	t.Helper()
	source, err := filepath.Abs("model.pml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, tail(out, 2000))
		}
		return string(out)
	}
	out := run("spin", append(slices.Clone(flags), "-a", source)...)
	if strings.Contains(out, "rror") {
		t.Fatalf("spin %v: %s", flags, out)
	}
	build := []string{e.optimize, "-w", "-DSAFETY", "-DMEMLIM=" + strconv.Itoa(e.megabyte), "-o", "pan", "pan.c"}
	if e.compress {
		build = append(build, "-DCOLLAPSE")
	}
	run(e.compiler(), build...)
	began := time.Now()
	out = run(filepath.Join(dir, "pan"), "-m"+strconv.Itoa(e.depth), "-w"+strconv.Itoa(e.table))
	f, err := parse(out)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, tail([]byte(out), 4000))
	}
	f.took = time.Since(began)
	return f
}

var (
	errorsLine = regexp.MustCompile(`depth reached \d+, errors: (\d+)`)
	statesLine = regexp.MustCompile(`(?m)^\s*(\S+) states, stored`)
	memoryLine = regexp.MustCompile(`(?m)^\s*(\S+)\s+total actual memory usage`)
	assertion  = regexp.MustCompile(`pan:\d+: assertion violated (.*) \(at depth`)
	pointLine  = regexp.MustCompile(`(?m)^reached: (.*)$`)
)

// parse reads what the search printed.
func parse(out string) (found, error) {
	f := found{reached: make(map[string]bool)}
	number := func(line *regexp.Regexp) (float64, error) {
		m := line.FindStringSubmatch(out)
		if m == nil {
			return 0, fmt.Errorf("found no %q", line)
		}
		return strconv.ParseFloat(m[1], 64)
	}
	errs, err1 := number(errorsLine)
	states, err2 := number(statesLine)
	memory, err3 := number(memoryLine)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return found{}, err
	}
	f.errors, f.states, f.megabyte = int(errs), states, memory
	f.complete = strings.Contains(out, "Full statespace search for:")
	for _, cut := range []string{"Search not completed", "too small", "out of memory", "MEMLIM", "hash-compact", "timeout"} {
		f.complete = f.complete && !strings.Contains(out, cut)
	}
	if m := assertion.FindStringSubmatch(out); m != nil {
		f.violated = m[1]
	}
	for _, m := range pointLine.FindAllStringSubmatch(out, -1) {
		f.reached[m[1]] = true
	}
	return f, nil
}

// holds says what speaks against the verdict that nothing can go wrong, in a search
// that came to all that it is about.
func (f found) holds(points []string) (against []string) {
	if f.errors != 0 || f.violated != "" {
		against = append(against, fmt.Sprintf("%d errors: %s", f.errors, f.violated))
	}
	if !f.complete {
		against = append(against, "the search was not complete")
	}
	for _, p := range points {
		if !f.reached[p] {
			against = append(against, "never reached: "+p)
		}
	}
	return against
}

// refuted reports whether a certain assertion failed.
func (f found) refuted(want string) bool {
	return f.errors > 0 && want != "" && strings.Contains(f.violated, want)
}

func tail(out []byte, n int) []byte {
	return bytes.TrimSpace(out[max(0, len(out)-n):])
}

func TestAVerdictNeedsACompleteSearchThatCameToThePoint(t *testing.T) {
	const full = "reached: work\n(Spin Version 6.5.2)\nFull statespace search for:\n" +
		"State-vector 124 byte, depth reached 878, errors: 0\n 1.2345e+08 states, stored\n   42.5\ttotal actual memory usage\n"
	failed := "pan:1: assertion violated ( !(overlap)|| !(1)) (at depth 9)\nWarning: Search not completed\n" +
		strings.Replace(full, "errors: 0", "errors: 1", 1)
	for _, c := range []struct {
		name, out      string
		holds, refuted bool
	}{
		{"complete", full, true, false},
		{"too deep", "error: max search depth too small\n" + full, false, false},
		{"out of memory", "pan: reached -DMEMLIM bound\n" + full, false, false},
		{"stopped", "Warning: Search not completed\n" + full, false, false},
		{"by bits", strings.Replace(full, "Full", "Bit", 1), false, false},
		{"came to nothing", strings.Replace(full, "reached: work", "unreached: work", 1), false, false},
		{"refuted", failed, false, true},
		{"refuted otherwise", strings.Replace(failed, "overlap", "no_gap", 1), false, false},
		{"another error", strings.Replace(full, "errors: 0", "errors: 1", 1), false, false},
	} {
		f, err := parse(c.out)
		if err != nil {
			t.Fatalf("parse(%s) = %v", c.name, err)
		}
		if f.states != 123450000 || f.megabyte != 42.5 {
			t.Errorf("parse(%s) = %v states, %v MB, want 123450000, 42.5", c.name, f.states, f.megabyte)
		}
		if got := f.holds([]string{"work"}); (got == nil) != c.holds {
			t.Errorf("%s: against it = %q, want it to hold: %v", c.name, got, c.holds)
		}
		if got := f.refuted("overlap"); got != c.refuted {
			t.Errorf("%s: refuted = %v, want %v", c.name, got, c.refuted)
		}
	}
	if _, err := parse("pan: killed"); err == nil {
		t.Error("parse of no figures = nil, want an error")
	}
}
