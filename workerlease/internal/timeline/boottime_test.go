package timeline

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/store"
)

// hour is a while after the machine was booted.
const hour = time.Hour

// booted is a stamp of a store whose time was noon at the boot time hour, made at another.
func booted(at time.Duration) store.Stamp {
	t := noon.Add(at - hour)
	return store.Stamp{Time: t.Truncate(time.Microsecond), Granularity: time.Microsecond, Server: "boot", Boottime: at}
}

// steady fails the test unless the line says [noon + earliest, noon + latest] at a local reading, and
// that this stays so.
func steady(t *testing.T, l *Line, local, earliest, latest time.Duration, want bool) {
	t.Helper()
	expect(t, l, local, l.Epoch(), earliest, latest)
	if got := l.At(local, l.Epoch()).Steady(); got != want {
		t.Errorf("At(%v).Steady() = %v, want %v", local, got, want)
	}
}

func TestAStampOfTheLocalClockAllowsForNoDriftAndNoRoundTrip(t *testing.T) {
	l := Line{Boottime: true}
	sample(t, &l, booted(hour+5*time.Second), hour, hour+8*time.Second, First)
	for _, after := range []time.Duration{8 * time.Second, time.Minute, 365 * 24 * time.Hour} {
		steady(t, &l, hour+after, after, after+time.Microsecond, true)
	}
	i := l.At(hour+time.Minute, 0)
	for _, e := range []Edge{Earliest, Mid, Latest} {
		if got := i.Until(i.At(e).Add(time.Hour), e); got != time.Hour {
			t.Errorf("Until(an hour after %v) = %v, want 1h", e, got)
		}
	}
	if got := i.Drift(time.Hour); got != 0 {
		t.Errorf("Drift(1h) = %v, want 0", got)
	}
	if got := l.Age(hour + time.Minute); got != 52*time.Second {
		t.Errorf("Age = %v, want 52s", got)
	}
}

func TestAStampOfTheLocalClockIsAsWideAsItsGranularityAndAge(t *testing.T) {
	l, none, plain := Line{Boottime: true}, Line{Boottime: true}, Line{}
	s := booted(hour)
	s.Granularity, s.MaxAge = ms, time.Second
	sample(t, &l, s, hour, hour, First)
	if i := l.At(hour, 0); i.Latest.Sub(i.Earliest).Round(ms) != time.Second+ms {
		t.Errorf("At(1h) = %v, want 1.001s", i)
	}
	// At the reading 0 as well, a stamp that doesn't name a reading of the local clock is none of it.
	for _, each := range []*Line{&none, &plain} {
		sample(t, each, store.Stamp{Time: noon}, 0, ms, First)
	}
	if got, want := none.At(ms, 0), plain.At(ms, 0); got != want {
		t.Errorf("without a reading: At(1ms) = %v, want %v", got, want)
	}
}

func TestAStampOfTheLocalClockIsLikeAnyOtherIfItMayBeOfAnotherOne(t *testing.T) {
	const sent, received = hour, hour + 2*time.Second
	for _, c := range []struct {
		name     string
		boottime time.Duration
		ignores  bool // what the line knows of its local clock
		steady   bool
	}{
		{"of the client's clock", hour + time.Second, false, true},
		{"when it was asked for", sent, false, true},
		{"when it arrived", received, false, true},
		{"of no clock", 0, false, false},
		{"made before it was asked for", sent - 1, false, false},
		{"made after it arrived", received + 1, false, false},
		{"below 0", -hour, false, false},
		{"and the client has a clock of its own", hour + time.Second, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := Line{Boottime: !c.ignores}
			s := booted(hour + time.Second)
			s.Boottime = c.boottime
			sample(t, &l, s, sent, received, First)
			if got := l.At(received, 0).Steady(); got != c.steady {
				t.Fatalf("Steady() = %v, want %v", got, c.steady)
			}
			if want := 1001 * time.Second; !c.steady && l.At(received+1000*time.Second, 0).Latest.Sub(s.Time) < want {
				t.Errorf("Latest = the stamp + %v, 1000s later, want + %v at least", l.At(received+1000*time.Second, 0).Latest.Sub(s.Time), want)
			}
		})
	}
}

// What a stamp says of the time after it doesn't go for what another one says.
func TestAfterAStampThatMayDriftStoreTimeMayDrift(t *testing.T) {
	plain := func(at time.Duration) store.Stamp {
		s := booted(at)
		s.Boottime = 0
		return s
	}
	l := Line{Boottime: true}
	sample(t, &l, plain(hour), hour, hour, First)
	steady(t, &l, hour+1000*time.Second, 999*time.Second-1, 1001*time.Second+time.Microsecond+2, false)
	sample(t, &l, booted(hour+1000*time.Second), hour+1000*time.Second, hour+1000*time.Second, Narrowed)
	steady(t, &l, hour+3000*time.Second, 3000*time.Second, 3000*time.Second+time.Microsecond, true)
	sample(t, &l, plain(hour+3000*time.Second), hour+3000*time.Second, hour+3000*time.Second, Narrowed)
	steady(t, &l, hour+4000*time.Second, 3999*time.Second-1, 4001*time.Second+time.Microsecond+1, false)
	// One that is late takes nothing back.
	sample(t, &l, booted(hour+5000*time.Second), hour+5000*time.Second, hour+5000*time.Second, Narrowed)
	sample(t, &l, plain(hour+4500*time.Second), hour+4500*time.Second, hour+4500*time.Second, Narrowed)
	steady(t, &l, hour+9000*time.Second, 9000*time.Second, 9000*time.Second+time.Microsecond, true)
	// Of two at one time, the one that may drift counts.
	at := hour + 6000*time.Second
	for _, order := range [][]store.Stamp{{plain(at), booted(at)}, {booted(at), plain(at)}} {
		twice := Line{Boottime: true}
		sample(t, &twice, order[0], at, at, First)
		sample(t, &twice, order[1], at, at, Narrowed)
		steady(t, &twice, at+1000*time.Second, 6999*time.Second-1, 7001*time.Second+1+time.Microsecond, false)
	}
}

// One that agrees with several clocks narrows none of them, but what they are merged into may drift as well.
func TestAfterAStampThatMayDriftAndDecidesNothingStoreTimeMayDrift(t *testing.T) {
	l := Line{Boottime: true}
	for n, want := range []Outcome{First, Narrowed, Narrowed, Contradicted} {
		at := hour + time.Duration(n)*time.Second
		s := booted(at)
		if want == Contradicted {
			s.Time = s.Time.Add(time.Second)
		}
		sample(t, &l, s, at, at, want)
	}
	slow := booted(hour + 6*time.Second)
	slow.Boottime = 0
	sample(t, &l, slow, hour+4*time.Second, hour+8*time.Second, Narrowed)
	const w = time.Second + 1 // in 1000 s
	steady(t, &l, hour+1008*time.Second, 1008*time.Second-w, 1009*time.Second+time.Microsecond+w, false)
}

// A stamp says nothing of how the clock went before it.
func TestBeforeAStampOfTheLocalClockStoreTimeMayHaveDrifted(t *testing.T) {
	l := Line{Boottime: true}
	sample(t, &l, booted(2000*time.Second+hour), 2000*time.Second+hour, 2000*time.Second+hour, First)
	expect(t, &l, hour+1000*time.Second, 0, 999*time.Second-1, 1001*time.Second+1+time.Microsecond)
}

func TestAJumpOfTheLocalClockIsNoticedToTheMicrosecond(t *testing.T) {
	l := Line{Boottime: true}
	for n := range 2 * Confirm {
		at := hour + time.Duration(n)*time.Minute
		s, want := booted(at), Narrowed
		switch n {
		case 0:
			want = First
		case Confirm:
			want = Contradicted
		case 2*Confirm - 1:
			want = Jumped
		}
		if n >= Confirm {
			s.Time = s.Time.Add(2 * time.Microsecond)
		}
		sample(t, &l, s, at-time.Second, at, want)
	}
	// Whoever hasn't settled allows for both, and for no drift between them.
	i := l.At(100*hour, 0)
	if got, want := i.Latest.Sub(i.Earliest), 3*time.Microsecond; got != want || !i.Steady() {
		t.Errorf("the interval is %v wide, and steady: %v, want %v, true", got, i.Steady(), want)
	}
}

// A clock that others may still act by may drift, although the one in force doesn't.
func TestAnIntervalIsSteadyIfAllClocksInItAre(t *testing.T) {
	l := Line{Boottime: true}
	for n := range time.Duration(2 * Confirm) {
		s := booted(hour + n)
		if n < Confirm {
			s.Time, s.Boottime = s.Time.Add(time.Minute), 0
		}
		l.Add(s, hour+n, hour+n)
	}
	if l.Epoch() != 1 || l.At(2*hour, 0).Steady() || !l.At(2*hour, 1).Steady() {
		t.Errorf("epoch %d, steady for whoever hasn't settled: %v, for whoever has: %v, want 1, false, true", l.Epoch(), l.At(2*hour, 0).Steady(), l.At(2*hour, 1).Steady())
	}
}

// containsTheLocalClock: store time is the local clock and an offset from when a stamp was made that
// says so until one has arrived that doesn't. Else it drifts. Servers stay within their skew.
func containsTheLocalClock(t *rapid.T) {
	l := Line{Boottime: true}
	u := universe{local: hour}
	from := rapid.SampledFrom(servers(t))
	drifts := true
	goOn := func(most time.Duration) {
		if drifts {
			u.drifting(t, most)
		} else {
			u.pass(passing(most).Draw(t, "true time"), 0)
		}
	}
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		if rapid.Bool().Draw(t, "pass") {
			goOn(rapid.SampledFrom([]time.Duration{time.Minute, 240 * time.Hour}).Draw(t, "longest pause"))
		} else {
			server := from.Draw(t, "server")
			s := store.Stamp{
				Granularity: rapid.SampledFrom([]time.Duration{1, time.Microsecond, ms}).Draw(t, "granularity"),
				Skew:        server.skew, Server: server.name,
			}
			goOn(time.Minute)
			u.pass(1, 0) // Of two stamps of one time, the one that may drift counts.
			sent := u.local
			goOn(time.Minute)
			s.Time = noon.Add(time.Duration(u.store + server.off)).Truncate(s.Granularity)
			steady := rapid.Bool().Draw(t, "steady")
			if steady {
				s.Boottime, drifts = u.local, false
			}
			goOn(time.Minute)
			if got := l.Add(s, sent, u.local); got != First && got != Narrowed {
				t.Fatalf("Add = %v, want %v: nothing jumped", got, Narrowed)
			}
			drifts = !steady
		}
		if i := l.At(u.local, 0); i.Known() {
			u.within(t, &l, 0, u.store, 0)
			if i.Steady() == drifts {
				t.Fatalf("Steady() = %v, want %v", i.Steady(), !drifts)
			}
		}
	}
}

func TestPropertyTheIntervalContainsStoreTimeThatIsTheLocalClockAtTimes(t *testing.T) {
	rapid.Check(t, containsTheLocalClock)
}
