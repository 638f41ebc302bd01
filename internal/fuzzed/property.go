// Package fuzzed makes fuzz targets of properties. Tests that import it draw from the seed in SLOTLEASE_SEED, if that is set,
// and the same again in the next run; -rapid.seed goes before it.
package fuzzed

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func init() {
	if seed := os.Getenv("SLOTLEASE_SEED"); seed != "" {
		if n, err := strconv.ParseInt(seed, 10, 64); err != nil || n < 1 { // To rapid, 0 means any.
			panic(fmt.Sprintf("SLOTLEASE_SEED=%s is no number from 1 to %d", seed, int64(math.MaxInt64)))
		}
		_ = flag.Set("rapid.seed", seed)
	}
}

// Property is a fuzz target that checks a property by a script that the fuzzer
// writes. It works like [rapid.MakeFuzz], but logs the draws only of executions that
// fail, because logging took most of the time. Those run twice.
func Property(check func(*rapid.T)) func(*testing.T, []byte) {
	// Inside a custom generator nothing is logged. That is undocumented; if it changes,
	// fuzzing only becomes slow again.
	quietly := rapid.Custom(func(t *rapid.T) bool {
		check(t)
		if t.Failed() {
			// Otherwise this t's Errorf would be lost.
			t.FailNow()
		}
		return true
	})
	quiet := rapid.MakeFuzz(func(t *rapid.T) { quietly.Draw(t, "script") })
	loud := rapid.MakeFuzz(check)
	return func(t *testing.T, script []byte) {
		defer func() {
			if t.Failed() {
				loud(t, script)
			}
		}()
		quiet(t, script)
	}
}
