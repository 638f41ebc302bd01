package workerlease_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var search = flag.Bool("variants.search", false, "search all seeds for those that catch the broken variants, and write them to testdata/variants.txt")

// mostSeeds is how many seeds a variant may escape.
const mostSeeds = 1000

// catch is how the simulation noticed a variant. The shortest run that does is kept in
// testdata/variants.txt, so that no test has to search for it again.
type catch struct {
	seed   int64
	length time.Duration // of a run that is long enough, 0 if all of it is
	wrong  string
}

// caught reports whether the variant is noticed in a run, and notes by what. It must be
// the broken rule that was noticed: without it, nothing is wrong.
func (v variant) caught(t *testing.T, c *catch) bool {
	t.Helper()
	wrong := v.run(t, c.seed, c.length)
	i := slices.IndexFunc(wrong, func(w string) bool { return strings.Contains(w, v.as) })
	if i < 0 {
		return false
	}
	c.wrong = wrong[i]
	if !v.whole() || v.around != nil {
		whole := variant{regime: v.regime, audit: v.audit}
		for _, wrong := range whole.run(t, c.seed, c.length) {
			if v.seldom {
				return false
			}
			t.Errorf("seed %d, with no rule broken: %s", c.seed, wrong)
		}
	}
	return true
}

// search finds the first seed in which the variant is noticed, and how long its run must
// be. A shorter run is the beginning of a longer one.
func (v variant) search(t *testing.T) catch {
	t.Helper()
	for seed := range int64(mostSeeds) {
		c := catch{seed: seed}
		if !v.caught(t, &c) {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(c.wrong, "at "), ": ")
		if at, err := time.ParseDuration(text); err == nil {
			short := catch{seed: seed, length: at.Truncate(time.Minute) + 2*time.Minute}
			if short.length < v.regime(seed).Length && v.caught(t, &short) {
				return short
			}
		}
		return c
	}
	t.Errorf("%s was not noticed in %d seeds", v.rule, mostSeeds)
	return catch{}
}

var catchesFile = filepath.Join("testdata", "variants.txt")

// readCatches reads how each variant was caught when all seeds were searched.
func readCatches(t *testing.T) map[string]catch {
	t.Helper()
	f, err := os.Open(catchesFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known := map[string]catch{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c catch
		var length string
		if _, err := fmt.Sscan(lines.Text(), &c.seed, &length); err != nil {
			t.Fatalf("%s: %q: %v", catchesFile, lines.Text(), err)
		}
		if c.length, err = time.ParseDuration(length); err != nil {
			t.Fatalf("%s: %q: %v", catchesFile, lines.Text(), err)
		}
		_, name, _ := strings.Cut(lines.Text(), "  ")
		if name = strings.TrimSpace(name); !slices.ContainsFunc(variants, func(v variant) bool { return v.name == name }) && !*search {
			t.Errorf("%s: there is no variant %q: run make variants", catchesFile, name)
		}
		known[name] = c
	}
	return known
}

func writeCatches(t *testing.T, caught map[string]catch) {
	t.Helper()
	var b strings.Builder
	for _, v := range variants {
		c := caught[v.name]
		fmt.Fprintf(&b, "%d %v  %s\n", c.seed, c.length, v.name)
	}
	if err := os.WriteFile(catchesFile, []byte(b.String()), 0o644); err != nil {
		t.Error(err)
	}
}
