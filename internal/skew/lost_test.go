package skew_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/internal/skew"
)

// The local clock drifts, but the servers' clocks don't. The others' clocks show where the clock of a
// server is that has been gone for days, whichever of them answer.
func TestALostServerIsKeptByTheOthersNotByTheLocalClock(t *testing.T) {
	t.Parallel()
	const days, ahead = 30, 3 * time.Second
	for _, ppm := range []time.Duration{-1000, -20, 20, 500} {
		c := set(ms, 0, 0, ahead)
		for day := time.Duration(0); day < days; day++ {
			for at := day * 24 * time.Hour; at < (day+1)*24*time.Hour; at += time.Minute {
				drifted := at / 1_000_000 * ppm
				c.Fail("c", at)
				for i, name := range []string{"a", "b"} {
					// In odd weeks one of them is away, in even ones the other.
					if int(day/7)%2 == i {
						c.Fail(name, at)
						continue
					}
					ask(c, name, drifted, at, ms)
				}
			}
			from := []string{"b", "a"}[int(day/7)%2]
			at := (day+1)*24*time.Hour - time.Minute
			if got := apart(t, c, from, at+ms); got < ahead || got > ahead+2*assumed+(day/7+2)*130*ms {
				t.Errorf("%d ppm: Apart(%s) on day %d = %v, want about %v", ppm, from, day, got, ahead)
			}
		}
	}
}

// The server by which a lost one was kept is removed from the set.
func TestALostServerIsKeptByAnotherIfTheFirstIsRemoved(t *testing.T) {
	t.Parallel()
	const ahead, hours = 3 * time.Second, 100
	c := set(ms, 0, 0, ahead)
	for at := time.Minute; at < hours*time.Hour; at += time.Minute {
		if at == time.Hour {
			c.Keep([]string{"b", "c"})
		}
		c.Fail("c", at)
		for _, name := range []string{"b", "a"} {
			ask(c, name, at/2000, at, ms)
		}
	}
	if got := apart(t, c, "b", hours*time.Hour); got < ahead || got > ahead+2*assumed+260*ms {
		t.Errorf("Apart(b) = %v, want about %v", got, ahead)
	}
}

// The local clock drifts at random, and some servers answer only at times. A server with a steady
// clock that can't be asked must be no further away than Apart says.
func TestApartHoldsWhileTheLocalClockDrifts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		c := &skew.Clocks{Assumed: assumed}
		c.Keep(names)
		local, now := time.Duration(0), time.Duration(0)
		var off [4]time.Duration
		pass := func(d time.Duration) {
			local += d
			now += d + d/1_000_000*time.Duration(rapid.Int64Range(-1000, 1000).Draw(t, "ppm"))
		}
		read := func(i int) {
			sent := local
			pass(time.Duration(rapid.Int64Range(0, int64(10*ms)).Draw(t, "there")))
			shown := noon.Add(now + off[i]).Truncate(ms)
			pass(time.Duration(rapid.Int64Range(0, int64(10*ms)).Draw(t, "back")))
			c.Read(names[i], skew.Reading{Time: shown, Granularity: ms, Sent: sent, Received: local})
		}
		for i := range names {
			off[i] = time.Duration(rapid.Int64Range(-int64(4*time.Second), int64(4*time.Second)).Draw(t, "off"))
			read(i)
		}
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			pass(time.Duration(rapid.Int64Range(0, int64(10*time.Minute)).Draw(t, "wait")))
			from := -1
			for i := range names {
				// The first server always answers. Otherwise nothing would separate the servers' drift from the
				// local clock's.
				if i == 0 || rapid.Bool().Draw(t, "answers") {
					read(i)
					from = i
				} else {
					c.Fail(names[i], local)
				}
			}
			got, ok := c.Apart(names[from], local)
			if !ok {
				t.Fatalf("Apart(%s) isn't known", names[from])
			}
			for j := range names {
				if is := (off[from] - off[j]).Abs(); got < is {
					t.Fatalf("Apart(%s) = %v, but %s is off by %v", names[from], got, names[j], is)
				}
			}
		}
	})
}
