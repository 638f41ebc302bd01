package timeline

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/store"
)

// one makes a stamp of the clock called name. That clock is off by some time, and all others are
// within skew of it.
func one(l *Line, at time.Duration, name string, off, skew time.Duration) Outcome {
	s := store.Stamp{Time: noon.Add(at + off), Granularity: ms, Skew: skew, Server: name, Clock: name}
	return l.Add(s, at-ms, at)
}

func TestAWiderSkewCountsForWhatEarlierStampsSaid(t *testing.T) {
	for _, c := range []struct {
		name             string
		stamps           func(l *Line)
		earliest, latest time.Duration
	}{
		{"of the same clock", func(l *Line) {
			one(l, time.Second, "a", 0, 100*ms)
			one(l, 2*time.Second, "a", 0, 3*time.Second)
		}, -3 * time.Second, 3 * time.Second},
		{"of another clock", func(l *Line) {
			one(l, time.Second, "a", 0, 100*ms)
			one(l, 2*time.Second, "b", 80*ms, 3*time.Second)
		}, 80*ms - 3*time.Second, 80*ms + 3*time.Second},
		{"after a narrower one", func(l *Line) {
			one(l, time.Second, "a", 0, 3*time.Second)
			one(l, 2*time.Second, "a", 0, 100*ms)
			one(l, 3*time.Second, "a", 0, 200*ms)
		}, -200 * ms, 200 * ms},
		{"while two clocks are in question", func(l *Line) {
			one(l, time.Second, "a", 0, 100*ms)
			one(l, 2*time.Second, "b", time.Second, 100*ms)
			one(l, 3*time.Second, "c", 500*ms, 3*time.Second)
		}, 500*ms - 3*time.Second, 500*ms + 3*time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l Line
			c.stamps(&l)
			at := l.fresh
			i := l.At(at, 0)
			if earliest, latest := i.Earliest.Sub(noon)-at, i.Latest.Sub(noon)-at; earliest > c.earliest || latest < c.latest {
				t.Errorf("the time is off by %v to %v, want %v to %v at least", earliest, latest, c.earliest, c.latest)
			}
		})
	}
}

func TestAWiderSkewKeepsWhatIsKnownOfTheClockItself(t *testing.T) {
	var l Line
	one(&l, time.Second, "a", 0, 100*ms)
	slow := store.Stamp{Time: noon.Add(2 * time.Second), Granularity: ms, Skew: 200 * ms, Server: "a", Clock: "a"}
	if got := l.Add(slow, 2*time.Second, 5*time.Second); got != Narrowed {
		t.Fatalf("Add() = %v, want %v", got, Narrowed)
	}
	i := l.At(5*time.Second, 0)
	if got := i.Latest.Sub(i.Earliest); got > 420*ms {
		t.Errorf("the interval is %v wide after a slow answer, want 420ms at most", got)
	}
}

// A pause of the machine moves the clocks of all servers by the same amount, and a step moves one. If
// that is less than the clocks are apart, it is no contradiction, but it must count at once.
func TestAJumpThatTheSkewAllowsForCountsAtOnce(t *testing.T) {
	const skew, by = 3 * time.Second, time.Second
	for _, clock := range []string{"a", "b"} {
		var l Line
		for at := time.Second; at < 5*time.Second; at += time.Second {
			one(&l, at, "a", 0, skew)
		}
		at := 5 * time.Second
		if got := one(&l, at, clock, by, skew); got != Narrowed {
			t.Errorf("clock %s is %v further: Add() = %v, want %v", clock, by, got, Narrowed)
		}
		i := l.At(at, 0)
		if earliest, latest := i.Earliest.Sub(noon)-at, i.Latest.Sub(noon)-at; earliest > by-skew || latest < by+skew {
			t.Errorf("clock %s: the time is off by %v to %v, want %v to %v at least", clock, earliest, latest, by-skew, by+skew)
		}
	}
}

// containsAllClocks: servers' clocks are apart by any amount, some can't be asked at first, and all
// jump at once now and then, since the machine was paused. Once a stamp's skew includes them, the
// interval contains the clocks of all servers.
func containsAllClocks(t *rapid.T) {
	var l Line
	var u universe
	names := []string{"a", "b", "c"}
	off, asked := make([]int64, len(names)), make([]bool, len(names))
	for i := range off {
		off[i] = rapid.Int64Range(-int64(4*time.Second), int64(4*time.Second)).Draw(t, "off")
		asked[i] = rapid.Bool().Draw(t, "asked")
	}
	primary := rapid.IntRange(0, len(names)-1)
	now := primary.Draw(t, "primary")
	jumped := false // then only stamps that name their clock will do
	for range rapid.IntRange(1, 20).Draw(t, "steps") {
		switch rapid.IntRange(0, 5).Draw(t, "step") {
		case 0:
			now = primary.Draw(t, "primary")
		case 1:
			asked[primary.Draw(t, "back")] = true
		case 2:
			u.store += rapid.Int64Range(0, int64(8*time.Second)).Draw(t, "pause")
			jumped = true
		default:
			u.drifting(t, 10*time.Minute)
		}
		asked[now] = true
		skew := int64(100 * ms)
		for i := range names {
			if d := off[i] - off[now]; asked[i] {
				skew = max(skew, d, -d)
			}
		}
		sent := u.local
		u.drifting(t, time.Second)
		s := store.Stamp{Granularity: ms, Skew: time.Duration(skew), Server: names[now], Clock: names[now]}
		if rapid.IntRange(0, 3).Draw(t, "named") == 0 && !jumped {
			s.Clock = ""
		}
		s.Time = noon.Add(time.Duration(u.store + off[now])).Truncate(ms)
		u.drifting(t, time.Second)
		trip := u.local - sent
		l.Add(s, sent, u.local)
		for i := range names {
			if asked[i] {
				// A jump that a round trip hides leaves the interval off by no more than that.
				u.within(t, &l, l.Epoch(), u.store+off[i], int64(ms+trip)+drift(trip))
			}
		}
	}
}

func TestPropertyTheIntervalContainsTheClocksOfAllServers(t *testing.T) {
	rapid.Check(t, containsAllClocks)
}
