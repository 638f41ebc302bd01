package storekit

import (
	"strings"
	"testing"
	"time"
)

func TestClocksAreApartByWhatTheirReadingsAllow(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	at := func(least, most time.Duration) Ahead { return Ahead{least, most} }
	for what, c := range map[string]struct {
		known       map[string]Ahead
		least, most time.Duration
		skew        time.Duration
		text        string
	}{
		"no server":         {nil, 0, 0, 100 * ms, ""},
		"one server":        {map[string]Ahead{"a": at(0, 900*ms)}, 0, 0, 100 * ms, ""},
		"two that agree":    {map[string]Ahead{"a": at(0, 20*ms), "b": at(10*ms, 40*ms)}, 0, 40 * ms, 100 * ms, ""},
		"two that may not":  {map[string]Ahead{"a": at(0, 20*ms), "b": at(50*ms, 900*ms)}, 30 * ms, 900 * ms, 100 * ms, ""},
		"one that is ahead": {map[string]Ahead{"a": at(0, 20*ms), "b": at(0, 10*ms), "c": at(3000*ms, 3010*ms)}, 2990 * ms, 3010 * ms, 3010 * ms, "the clock of c is ahead of that of b by 2.99s to 3.01s, and 100ms are assumed"},
		// The local clock was set between two readings of each.
		"two contradictions": {map[string]Ahead{"a": at(10_000*ms, 20*ms), "b": at(10_000*ms, 10*ms)}, 0, 9990 * ms, 100 * ms, ""},
	} {
		d := Apart(c.known)
		if d.Least != c.least || d.Most != c.most || d.Skew(100*ms) != c.skew || !strings.HasPrefix(d.Exceeds(100*ms), c.text) || (c.text == "") != (d.Exceeds(100*ms) == "") {
			t.Errorf("Apart() of %s = %+v, skew %v, %q; want %v to %v, %v, %q", what, d, d.Skew(100*ms), d.Exceeds(100*ms), c.least, c.most, c.skew, c.text)
		}
	}
	old := Distance{Least: 3000 * ms, Most: 3100 * ms, Fast: "a", Slow: "b"}
	for _, c := range []struct {
		silent []string
		least  time.Duration
	}{{nil, 10 * ms}, {[]string{"c"}, 10 * ms}, {[]string{"c", "b"}, 3000 * ms}, {[]string{"a"}, 3000 * ms}} {
		if got := (Distance{Least: 10 * ms}).Keep(old, c.silent); got.Least != c.least {
			t.Errorf("Keep() while %q are silent = %+v, want at least %v", c.silent, got, c.least)
		}
	}
	if got := at(0, 5).And(at(2, 9)); got != at(2, 5) {
		t.Errorf("And() = %v, want what both allow", got)
	}
}
