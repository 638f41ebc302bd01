package suites_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
)

// skipped records that a test was skipped, and says so by panicking with its reason.
type skipped struct{ testing.TB }

func (s skipped) Skipf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// reason is why a test is skipped, or empty.
func reason(t *testing.T, ask func(testing.TB)) (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = r.(string)
		}
	}()
	ask(skipped{t})
	return ""
}

func TestTheQuickRunSkipsWithTheCommandThatRuns(t *testing.T) {
	server := func(name string) func(testing.TB) {
		return func(t testing.TB) { suites.Server(t, name) }
	}
	prove := func(t testing.TB) { suites.Prove(t, "kills 40 processes") }
	for _, c := range []struct {
		suites, require string
		ask             func(testing.TB)
		want            string
	}{
		{"", "", prove, "kills 40 processes: SLOTLEASE_SUITES=all go test -run '^" + t.Name() + "$' ./internal/suites"},
		{"all", "", prove, ""},
		{"race", "", prove, ""},
		{"", "", server("mongo"), ""},
		{"", "", server("redis"), "a server of redis"},
		{"", "mongo,redis", server("redis"), ""},
		{"all", "", server("redis"), ""},
	} {
		t.Setenv("SLOTLEASE_SUITES", c.suites)
		t.Setenv("REQUIRE_STORES", c.require)
		if got := reason(t, c.ask); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("SLOTLEASE_SUITES=%q REQUIRE_STORES=%q: skipped because %q, want %q", c.suites, c.require, got, c.want)
		}
	}
}
