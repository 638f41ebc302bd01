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

// The other member of a set of two is gone, and the primary's clock is set, or the machine is paused:
// nobody is left to show which. The local clock, which drifts, has no part in where the lost one is.
func TestALostServerInDoubtIsKeptByTheOthersToo(t *testing.T) {
	t.Parallel()
	const days, ahead = 30, 3 * time.Second
	for _, ppm := range []time.Duration{-20, 20} {
		for _, jump := range []time.Duration{-200 * ms, 200 * ms} {
			c := set(ms, 0, ahead)
			for at := time.Minute; at <= days*24*time.Hour; at += time.Minute {
				off := at / 1_000_000 * ppm
				if at > time.Hour {
					off += jump
				}
				c.Fail("b", at)
				ask(c, "a", off, at, ms)
			}
			least := max(ahead, ahead-jump)
			if got := apart(t, c, "a", days*24*time.Hour+ms); got < least || got > least+2*assumed {
				t.Errorf("%d ppm, %v: Apart(a) after %d days = %v, want %v to %v", ppm, jump, days, got, least, least+2*assumed)
			}
		}
	}
}

// The same while clocks are set, and the machine is paused, now and then.
func TestApartHoldsAfterJumpsWhileTheLocalClockDrifts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}[:rapid.IntRange(2, 4).Draw(t, "servers")]
		lost := rapid.IntRange(1, len(names)-1).Draw(t, "lost")
		c := &skew.Clocks{Assumed: assumed}
		c.Keep(names)
		ppm := time.Duration(rapid.Int64Range(-100, 100).Draw(t, "ppm"))
		local, now := time.Duration(0), time.Duration(0)
		off := make([]time.Duration, len(names))
		pass := func(d time.Duration) { local, now = local+d, now+d+d*ppm/1_000_000 }
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
		for range rapid.IntRange(1, 10).Draw(t, "rounds") {
			for range rapid.SampledFrom([]int{1, 200}).Draw(t, "minutes") {
				pass(time.Minute)
				c.Fail(names[lost], local)
				for i := range names {
					if i != lost {
						read(i)
					}
				}
			}
			// More than drift and trips hide.
			by := time.Duration(rapid.Int64Range(int64(400*ms), int64(5*time.Second)).Draw(t, "by"))
			switch set := rapid.IntRange(-len(names), len(names)-1).Draw(t, "set"); {
			case set < 0:
				now += by
			case set != lost:
				off[set] += by * time.Duration(1-2*rapid.IntRange(0, 1).Draw(t, "back"))
			}
			for again := range 3 {
				for i := range names {
					if i != lost && (again == 0 || c.Need(names[i], local) != skew.Nothing) {
						read(i)
					}
				}
			}
			got, ok := c.Apart("a", local)
			if !ok {
				t.Fatal("Apart(a) isn't known")
			}
			for j, name := range names {
				if is := (off[0] - off[j]).Abs(); got < is {
					t.Fatalf("Apart(a) = %v, but %s is off by %v (lost %s)", got, name, is, names[lost])
				}
			}
		}
	})
}
