package skew_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/internal/skew"
)

// The third server, 3 s ahead, can't be asked any more when a clock jumps.
func TestAJumpDoesNotForgetWhereALostServerWas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		a, b         time.Duration // by how much the offsets to their clocks change
		least, most  time.Duration
		beforeOthers time.Duration // least, until b was asked anew
	}{
		{name: "the clock of a is set by 200 ms", a: 200 * ms, least: 2800 * ms, most: 2820 * ms, beforeOthers: 3 * time.Second},
		{name: "the clock of a is set back", a: -time.Second, least: 4 * time.Second, most: 4020 * ms, beforeOthers: 4 * time.Second},
		{name: "the machine was paused for 1 s", a: time.Second, b: time.Second, least: 3 * time.Second, most: 3020 * ms, beforeOthers: 3 * time.Second},
	} {
		clocks := set(ms, 0, 0, 3*time.Second)
		clocks.Fail("c", ms)
		ask(clocks, "a", c.a, time.Second, ms)
		if _, ok := clocks.Apart("a", time.Second+ms); ok {
			t.Errorf("%s: Apart(a) is known before b, which can be asked, was asked anew", c.name)
		}
		clocks.Fail("b", time.Second)
		if got := apart(t, clocks, "a", time.Second+ms); got < c.beforeOthers {
			t.Errorf("%s: Apart(a) while b can't be asked = %v, want %v at least", c.name, got, c.beforeOthers)
		}
		ask(clocks, "b", c.b, time.Second+10*ms, ms)
		if got := apart(t, clocks, "a", time.Second+20*ms); got < c.least || got > c.most {
			t.Errorf("%s: Apart(a) = %v, want %v to %v", c.name, got, c.least, c.most)
		}
	}
}

// Daily pauses of the machine while a server is gone must not widen its bound each time.
func TestPausesDoNotAddUp(t *testing.T) {
	t.Parallel()
	c := set(ms, 0, 0, 3*time.Second)
	paused := time.Duration(0)
	for day := time.Duration(1); day < 100; day++ {
		paused += time.Hour
		for i, name := range []string{"a", "b", "a"} {
			c.Fail("c", day*time.Minute)
			ask(c, name, paused, day*time.Minute+time.Duration(i)*10*ms, ms)
		}
		if got := apart(t, c, "a", day*time.Minute+40*ms); got < 3*time.Second || got > 3*time.Second+2*assumed+day*20*ms {
			t.Fatalf("Apart(a) after %d pauses of an hour = %v, want about 3s", day, got)
		}
	}
}

// A clock that is stepped by less than a round trip contradicts nothing.
func TestAStepThatRoundTripsHideIsCoveredSoon(t *testing.T) {
	t.Parallel()
	const step = 400 * ms
	c := set(ms, 0, 0)
	last := time.Duration(0)
	for at := time.Minute; at < time.Hour; at += 10 * time.Second {
		ask(c, "b", step, at, time.Second)
		ask(c, "a", 0, at, ms)
		if apart(t, c, "a", at+time.Second) < step {
			last = at
		}
	}
	if last > time.Minute+skew.Stale {
		t.Errorf("a step of %v isn't covered %v after it, want %v at most", step, last-time.Minute, skew.Stale)
	}
}

func TestAnOlderAnswerDoesNotReplaceANewerOne(t *testing.T) {
	t.Parallel()
	const ahead, at = 3 * time.Second, 10 * time.Second
	c := set(ms, 0, 0)
	// b shows its clock at once, but the answer takes a second. Meanwhile the clock is set, and b
	// answers to another question.
	ask(c, "b", ahead, at+500*ms, ms)
	ask(c, "a", 0, at+510*ms, ms)
	c.Read("b", skew.Reading{Time: noon.Add(at), Granularity: ms, Sent: at, Received: at + time.Second})
	if got, ok := c.Apart("a", at+time.Second); ok && got < ahead {
		t.Errorf("Apart(a) = %v, want %v at least, or that it isn't known", got, ahead)
	}
	for _, name := range []string{"a", "b"} {
		if got := c.Need(name, at+time.Second); got != skew.Waiting {
			t.Errorf("Need(%s) after a contradiction = %v, want %v", name, got, skew.Waiting)
		}
	}
	ask(c, "b", ahead, at+1100*ms, ms)
	ask(c, "a", 0, at+1100*ms, ms)
	if got := apart(t, c, "a", at+1200*ms); got < ahead || got > ahead+10*ms {
		t.Errorf("Apart(a) once both were asked anew = %v, want %v", got, ahead)
	}
}

// The machine is paused for as long as the third server is ahead. The answer of that was on its way
// meanwhile, and shows what its clock was before.
func TestAnAnswerFromBeforeAPauseIsNoneFromAfterIt(t *testing.T) {
	t.Parallel()
	const ahead, at = 3 * time.Second, 10 * time.Second
	for name, others := range map[string][]string{
		"one other has answered":   {"a"},
		"two others have answered": {"a", "b"},
	} {
		c := set(ms, 0, 0, ahead)
		local := at
		for _, other := range others {
			local += 20 * ms
			ask(c, other, ahead, local, ms)
		}
		local = at + 250*ms
		c.Read("c", skew.Reading{Time: noon.Add(at + ahead), Granularity: ms, Sent: at, Received: local})
		if got := c.Need("c", local); got != skew.Waiting {
			t.Errorf("%s: Need(c) = %v, want %v", name, got, skew.Waiting)
		}
		for _, other := range []string{"a", "b"} {
			local += 20 * ms
			ask(c, other, ahead, local, ms)
		}
		if got, ok := c.Apart("a", local); ok {
			t.Errorf("%s: Apart(a) = %v before c was asked anew, want that it isn't known", name, got)
		}
		ask(c, "c", 2*ahead, local+20*ms, ms)
		if got := apart(t, c, "a", local+30*ms); got < ahead || got > ahead+20*ms {
			t.Errorf("%s: Apart(a) = %v, want %v", name, got, ahead)
		}
	}
}

// Clocks are set, one at a time, and the machine is paused. A server that was asked afterwards must
// be no further away than Apart says, and neither must one that was lost before.
func TestApartHoldsAfterJumps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		n := rapid.IntRange(2, 4).Draw(t, "servers")
		var off [4]time.Duration
		c := &skew.Clocks{}
		c.Keep(names[:n])
		local := time.Duration(0)
		read := func(i int) {
			trip := time.Duration(rapid.Int64Range(0, int64(20*ms)).Draw(t, "trip"))
			at := local + time.Duration(rapid.Int64Range(0, int64(trip)).Draw(t, "read"))
			c.Read(names[i], skew.Reading{Time: noon.Add(at + off[i]).Truncate(ms), Granularity: ms, Sent: local, Received: local + trip})
			local += trip
		}
		for i := range n {
			off[i] = time.Duration(rapid.Int64Range(-int64(4*time.Second), int64(4*time.Second)).Draw(t, "off"))
			read(i)
		}
		lost := rapid.IntRange(1, n-1).Draw(t, "lost")
		for range rapid.IntRange(1, 8).Draw(t, "jumps") {
			local += time.Duration(rapid.Int64Range(int64(ms), int64(10*time.Second)).Draw(t, "wait"))
			c.Fail(names[lost], local)
			// Another test covers steps that two round trips of 20 ms and the drift of 10 s can hide.
			by := time.Duration(rapid.Int64Range(int64(60*ms), int64(5*time.Second)).Draw(t, "by"))
			if rapid.Bool().Draw(t, "back") {
				by = -by
			}
			switch set := rapid.IntRange(0, n).Draw(t, "set"); {
			case set < n && set != lost:
				off[set] += by
			default:
				for i := range n {
					off[i] += by.Abs()
				}
			}
			for _, i := range rapid.Permutation([]int{0, 1, 2, 3}[:n]).Draw(t, "order") {
				if i != lost {
					read(i)
				}
			}
			for again := 0; ; again++ {
				asked := false
				for i := range n {
					if c.Need(names[i], local) == skew.Waiting {
						read(i)
						asked = true
					}
				}
				if !asked {
					break
				}
				if again > 3 {
					t.Fatal("there is no end to asking anew")
				}
			}
			for i := range n {
				got, ok := c.Apart(names[i], local)
				if i == lost {
					continue
				}
				if !ok {
					t.Fatalf("Apart(%s) isn't known", names[i])
				}
				for j := range n {
					if is := (off[i] - off[j]).Abs(); got < is {
						t.Fatalf("Apart(%s) = %v, but %s is off by %v (lost %s)", names[i], got, names[j], is, names[lost])
					}
				}
			}
		}
	})
}
