// Package fuzzed makes fuzz targets of properties.
package fuzzed

import (
	"testing"

	"pgregory.net/rapid"
)

// Property is a fuzz target that checks a property by a script that the fuzzer
// writes. It does what [rapid.MakeFuzz] does, but logs the draws of executions
// that fail only: logging took most of the time. Those are done twice.
func Property(check func(*rapid.T)) func(*testing.T, []byte) {
	// Within a generator of its own, nothing is logged. That is documented
	// nowhere; if it changes, fuzzing is slow again and nothing worse.
	quietly := rapid.Custom(func(t *rapid.T) bool {
		check(t)
		if t.Failed() {
			// Else this t's Errorf would be forgotten.
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
