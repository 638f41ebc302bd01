package skew_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/slotlease/slotlease/internal/fuzzed" // properties draw from the seed of the run
	"github.com/slotlease/slotlease/internal/skew"
)

const (
	ms      = time.Millisecond
	assumed = 100 * ms
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// set is a set of servers whose clocks are off by so much, and which answer within trip.
func set(trip time.Duration, off ...time.Duration) *skew.Clocks {
	c := &skew.Clocks{Assumed: assumed}
	c.Keep([]string{"a", "b", "c", "d"}[:len(off)])
	for i, by := range off {
		ask(c, string(rune('a'+i)), by, 0, trip)
	}
	return c
}

// ask has a server's clock read at a local reading, in the middle of a trip.
func ask(c *skew.Clocks, name string, off, at, trip time.Duration) {
	c.Read(name, skew.Reading{
		Time: noon.Add(at + off).Truncate(ms), Granularity: ms,
		Sent: at - trip/2, Received: at + trip - trip/2,
	})
}

func TestClocksAreApartByWhatWasMeasuredAndItsError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		clocks      *skew.Clocks
		from        string
		at          time.Duration
		least, most time.Duration
	}{
		"one clock":                            {set(ms, 0), "a", time.Hour, 0, 0},
		"clocks that agree within 2 ms":        {set(ms, 0, 2*ms, -ms), "b", time.Second, 3 * ms, 10 * ms},
		"one is 80 ms ahead, seen from it":     {set(ms, 0, 80*ms), "b", time.Second, 80 * ms, 87 * ms},
		"one is 3 s ahead, seen from another":  {set(ms, 0, 80*ms, 3*time.Second), "a", time.Second, 3 * time.Second, 3007 * ms},
		"servers far away":                     {set(60*ms, 0, 0), "a", time.Second, 60 * ms, 125 * ms},
		"answers of a minute ago":              {set(ms, 0, 0), "a", time.Minute, 120 * ms, 126 * ms},
		"one of three can't be asked":          {lost(set(ms, 0, 2*ms)), "a", 0, assumed + 2*ms, assumed + 8*ms},
		"one is 3 s ahead, one can't be asked": {lost(set(ms, 0, 3*time.Second)), "a", 0, assumed + 3*time.Second, assumed + 3007*ms},
	} {
		if got, ok := c.clocks.Apart(c.from, c.at); !ok || got < c.least || got > c.most {
			t.Errorf("%s: Apart(%q) = %v, %v, want %v to %v", name, c.from, got, ok, c.least, c.most)
		}
	}
	for _, name := range []string{"c", "unheard of"} {
		if got, ok := lost(set(ms, 0, 0)).Apart(name, 0); ok {
			t.Errorf("Apart(%s), which never answered, = %v, want that it isn't known", name, got)
		}
	}
}

// apart is what is known.
func apart(t *testing.T, c *skew.Clocks, from string, at time.Duration) time.Duration {
	t.Helper()
	got, ok := c.Apart(from, at)
	if !ok {
		t.Errorf("Apart(%s, %v) isn't known", from, at)
	}
	return got
}

// lost has a third server that doesn't answer.
func lost(c *skew.Clocks) *skew.Clocks {
	c.Keep([]string{"a", "b", "c"})
	c.Fail("c", 0)
	return c
}

func TestAServerThatIsGoneStaysWhereItWasSeenLast(t *testing.T) {
	t.Parallel()
	c := set(ms, 0, 3*time.Second)
	for _, at := range []time.Duration{time.Second, 29 * time.Second, time.Minute, 24 * time.Hour, 30 * 24 * time.Hour} {
		c.Fail("b", at)
		ask(c, "a", 0, at, ms)
		if got := apart(t, c, "a", at+ms); got < 3*time.Second || got > 3*time.Second+assumed+10*ms {
			t.Errorf("Apart(a) after b was gone for %v = %v, want 3s and %v at most", at, got, assumed)
		}
		if at > skew.Stale {
			if got := apart(t, c, "a", at+ms); got < 3*time.Second+assumed {
				t.Errorf("Apart(a) after b was gone for %v = %v, want 3s and %v: it may have been set meanwhile", at, got, assumed)
			}
		}
	}
}

func TestAContradictionForgetsWhatWasMeasuredBefore(t *testing.T) {
	t.Parallel()
	c := set(ms, 0, 0, 0)
	ask(c, "b", 0, 2*time.Second, ms)
	// The machine was suspended for an hour: its clock stood still.
	ask(c, "a", time.Hour, 5*time.Second, ms)
	if got := c.Need("c", 5*time.Second); got != skew.Waiting {
		t.Errorf("Need(c), which was measured before, = %v, want %v", got, skew.Waiting)
	}
	for _, name := range []string{"b", "c"} {
		ask(c, name, time.Hour, 5*time.Second+10*ms, ms)
	}
	if got := apart(t, c, "a", 5*time.Second+20*ms); got > 10*ms {
		t.Errorf("Apart(a) when all were measured again = %v, want 10ms at most", got)
	}
}

func TestNeed(t *testing.T) {
	t.Parallel()
	c := set(ms, 0)
	c.Keep([]string{"a", "b"})
	for _, x := range []struct {
		name string
		at   time.Duration
		want skew.Need
	}{
		{"a", time.Second, skew.Nothing},
		{"a", 3 * time.Second, skew.Asking},
		{"a", 31 * time.Second, skew.Waiting},
		{"b", 0, skew.Waiting},
		{"c", 0, skew.Nothing},
	} {
		if got := c.Need(x.name, x.at); got != x.want {
			t.Errorf("Need(%q, %v) = %v, want %v", x.name, x.at, got, x.want)
		}
	}
	if a, b := c.Widened("a", 10*time.Second), c.Widened("b", 10*time.Second); a < 9*ms || a > 11*ms || b != 0 {
		t.Errorf("Widened() after 10 s = %v of a server that answered, %v of one that didn't, want about 10ms, 0", a, b)
	}
	c.Fail("a", time.Hour)
	c.Fail("b", time.Hour)
	for _, name := range []string{"a", "b"} {
		if got := c.Need(name, time.Hour+skew.Stale); got != skew.Asking {
			t.Errorf("Need(%q) within %v of its failure = %v, want %v: nobody waits for it again so soon", name, skew.Stale, got, skew.Asking)
		}
		if got := c.Need(name, time.Hour+skew.Stale+1); got != skew.Trying {
			t.Errorf("Need(%q) later than %v after its failure = %v, want %v: it may be back", name, skew.Stale, got, skew.Trying)
		}
	}
	c.Keep([]string{"b"})
	c.Keep([]string{"a", "b"})
	if got := c.Need("a", time.Second); got != skew.Waiting {
		t.Errorf("Need(a) after it was removed and added = %v, want %v", got, skew.Waiting)
	}
}

func TestStraysNamesTheOddOneOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		off  []time.Duration
		want string
	}{
		{[]time.Duration{0, 80 * ms, 2 * ms}, "[]"},
		{[]time.Duration{0, 3 * time.Second, 2 * ms}, "[b of c]"},
		{[]time.Duration{-3 * time.Second, 0, 2 * ms}, "[a of b]"},
		{[]time.Duration{0, 3 * time.Second}, "[b of a]"},
		{[]time.Duration{0, 3 * time.Second, -3 * time.Second}, "[c of a b of a]"},
		{[]time.Duration{time.Second}, "[]"},
	} {
		var got []string
		for _, s := range set(ms, c.off...).Strays(time.Second) {
			got = append(got, s.Server+" of "+s.Of)
			a, b := c.off[s.Server[0]-'a'], c.off[s.Of[0]-'a']
			if (s.Ahead - (a - b)).Abs() > 2*ms {
				t.Errorf("clocks off by %v: %s is ahead of %s by %v", c.off, s.Server, s.Of, s.Ahead)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("clocks off by %v: Strays() = %v, want %v", c.off, got, c.want)
		}
	}
}

// However they drift, are asked and answer, servers are never further apart than Apart says.
func TestApartHoldsWhateverTheClocksDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		n := rapid.IntRange(2, 4).Draw(t, "servers")
		c := &skew.Clocks{Assumed: assumed}
		c.Keep(names[:n])
		// Each clock runs at its own rate, and is right by the local clock at first.
		var off [4]time.Duration
		var rate [4]int64
		for i := range n {
			off[i] = time.Duration(rapid.Int64Range(-int64(4*time.Second), int64(4*time.Second)).Draw(t, "off"))
			rate[i] = rapid.Int64Range(-1000, 1000).Draw(t, "ppm")
		}
		shows := func(i int, local time.Duration) time.Time {
			return noon.Add(local + off[i] + time.Duration(int64(local)/1_000_000*rate[i]))
		}
		local := time.Duration(0)
		known := map[int]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			local += time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "wait"))
			i := rapid.IntRange(0, n-1).Draw(t, "server")
			trip := time.Duration(rapid.Int64Range(0, int64(300*ms)).Draw(t, "trip"))
			at := local + time.Duration(rapid.Int64Range(0, int64(trip)).Draw(t, "read"))
			c.Read(names[i], skew.Reading{Time: shows(i, at).Truncate(ms), Granularity: ms, Sent: local, Received: local + trip})
			local += trip
			known[i] = true
			for from := range known {
				got, ok := c.Apart(names[from], local)
				if !ok {
					t.Fatalf("Apart(%s) isn't known", names[from])
				}
				for other := range known {
					if is := shows(from, local).Sub(shows(other, local)).Abs(); got < is {
						t.Fatalf("Apart(%s) = %v at %v, but %s is off by %v", names[from], got, local, names[other], is)
					}
				}
				if len(known) < n && got < assumed {
					t.Fatalf("Apart(%s) = %v, want %v at least while a server is unknown", names[from], got, assumed)
				}
			}
		}
	})
}
