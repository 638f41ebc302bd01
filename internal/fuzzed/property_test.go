package fuzzed_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/internal/fuzzed"
)

// bad names a property for a process that runs this test alone.
const bad = "SLOTLEASE_BAD_PROPERTY"

var properties = map[string]func(*rapid.T){
	"told": func(t *rapid.T) {
		if n := rapid.IntRange(0, 9).Draw(t, "n"); n >= 0 {
			t.Errorf("%d is what the property tells of", n)
		}
	},
	"fatal": func(t *rapid.T) { t.Fatalf("%d is what the property tells of", rapid.IntRange(0, 9).Draw(t, "n")) },
	"panic": func(t *rapid.T) {
		rapid.IntRange(0, 9).Draw(t, "n")
		panic("what the property tells of")
	},
	"good": func(t *rapid.T) { rapid.IntRange(0, 9).Draw(t, "n") },
	// The script ends in the middle: that is no failure.
	"short": func(t *rapid.T) {
		for {
			rapid.IntRange(0, 9).Draw(t, "n")
		}
	},
}

func TestAPropertyThatDoesNotHoldFailsTheTarget(t *testing.T) {
	if name := os.Getenv(bad); name != "" {
		fuzzed.Property(properties[name])(t, make([]byte, 64))
		return
	}
	for name := range properties {
		c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v="+strconv.FormatBool(name == "good"))
		c.Env = append(os.Environ(), bad+"="+name)
		out, err := c.CombinedOutput()
		told := strings.Contains(string(out), "what the property tells of") && strings.Contains(string(out), "draw n")
		if holds := name == "good" || name == "short"; (err == nil) != holds || told == holds {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}
