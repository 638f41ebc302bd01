package timeline

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/internal/fuzzed"
	"github.com/slotlease/slotlease/store"
)

// drifting lets time pass for both clocks, each at a rate of its own. The local
// clock goes on while the machine is suspended, so a suspend is a long pass.
func (u *universe) drifting(t *rapid.T, most time.Duration) {
	span := passing(most).Draw(t, "true time")
	off := rapid.Int64Range(-1000, 1000).Draw(t, "ppm of the local clock")
	left := 1000 - max(off, -off)
	ran := func(ppm int64) int64 { return int64(span) + int64(span)/1_000_000*ppm }
	local, stored := ran(off), ran(rapid.Int64Range(-left, left).Draw(t, "ppm of store time"))
	// Drift is counted by the local clock. Counted by true time, 500 ppm against
	// 500 ppm would be half a ppm too much.
	u.local += time.Duration(local)
	u.store += min(max(stored, local-local/perDrift), local+local/perDrift)
}

// server is one of a store's servers, whose clock is off within the skew that
// its stamps claim.
type server struct {
	name string
	skew time.Duration
	off  int64
}

// servers draws a store's servers.
func servers(t *rapid.T) []server {
	skew := rapid.SampledFrom([]time.Duration{0, ms, 100 * ms, 250 * ms}).Draw(t, "skew")
	var all []server
	for i := range rapid.IntRange(1, 4).Draw(t, "servers") {
		off := rapid.Int64Range(-int64(skew), int64(skew)).Draw(t, "off")
		all = append(all, server{string(rune('a' + i)), skew, off})
	}
	return all
}

// sampled asks a server for a stamp and adds it. It also returns how uncertain
// store time is by this sample alone.
func (u *universe) sampled(t *rapid.T, l *Line, from server) (Outcome, time.Duration) {
	// Now and then the machine is suspended on the way.
	most := rapid.SampledFrom([]time.Duration{time.Second, time.Second, 10 * time.Second, 72 * time.Hour}).Draw(t, "longest way")
	return u.sampledWithin(t, l, from, most)
}

// sampledWithin is sampled, with a way there and a way back of no more than most.
func (u *universe) sampledWithin(t *rapid.T, l *Line, from server, most time.Duration) (Outcome, time.Duration) {
	sent := u.local
	u.drifting(t, most)
	s := store.Stamp{
		Granularity: rapid.SampledFrom([]time.Duration{1, time.Microsecond, ms, time.Second}).Draw(t, "granularity"),
		MaxAge:      rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(t, "maxAge"),
		Skew:        from.skew,
		Server:      from.name,
	}
	age := rapid.Int64Range(0, int64(s.MaxAge)).Draw(t, "age")
	s.Time = noon.Add(time.Duration(u.store + from.off - age)).Truncate(s.Granularity)
	u.drifting(t, most)
	trip := u.local - sent
	return l.Add(s, sent, u.local), s.Granularity + s.MaxAge + trip + time.Duration(drift(trip)) + 2*s.Skew
}

// within demands that the interval of a reader contains a time of noon + at, or
// misses it by no more than slack.
func (u *universe) within(t *rapid.T, l *Line, settled int, at, slack int64) {
	i := l.At(u.local, settled)
	if i.Latest.Before(i.Earliest) {
		t.Fatalf("At(%v, %d) = %v is turned around", u.local, settled, i)
	}
	when := noon.Add(time.Duration(at))
	if i.Earliest.Sub(when) > time.Duration(slack) || when.Sub(i.Latest) > time.Duration(slack) {
		t.Fatalf("At(%v, %d) = %v misses %v by more than %v", u.local, settled, i, when, time.Duration(slack))
	}
}

// contains: while both clocks drift within MaxDrift and
// the servers stay within their skew, every reader's interval contains store
// time, and nothing is taken for a jump.
func contains(t *rapid.T) {
	var l Line
	var u universe
	from := rapid.SampledFrom(servers(t))
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		if rapid.Bool().Draw(t, "pass") {
			u.drifting(t, rapid.SampledFrom([]time.Duration{time.Minute, 240 * time.Hour}).Draw(t, "longest pause"))
		} else {
			want := Narrowed
			if len(l.clocks) == 0 {
				want = First
			}
			if got, _ := u.sampled(t, &l, from.Draw(t, "server")); got != want {
				t.Fatalf("Add = %v, want %v: nothing jumped", got, want)
			}
		}
		if len(l.clocks) == 0 {
			continue
		}
		for settled := range l.Epoch() + 1 {
			u.within(t, &l, settled, u.store, 0)
		}
	}
	if l.Jumps() != 0 {
		t.Fatalf("Jumps() = %d, want none", l.Jumps())
	}
}

// noticesAJump: a jump of either clock, that is a step of the store's or a local
// clock that stood still, is noticed by the next sample if it is larger than
// what is uncertain. Readers are then right by both clocks, and those that haven't
// settled still are after further samples have decided. A jump that isn't noticed, or
// that becomes smaller than what is uncertain, leaves an interval that is off by no more
// than the jump.
func noticesAJump(t *rapid.T) {
	var l Line
	var u universe
	from := servers(t)[0]
	before := rapid.IntRange(1, 6).Draw(t, "samples before")
	for range before {
		u.drifting(t, 10*time.Minute)
		u.sampled(t, &l, from)
	}
	scale := rapid.SampledFrom([]time.Duration{1, time.Microsecond, ms, time.Second, time.Minute, time.Hour}).Draw(t, "scale of the jump")
	by := int64(scale) * rapid.Int64Range(-1500, 1500).Draw(t, "jump")
	size := max(by, -by)
	u.store += by
	old := Line{clocks: slices.Clone(l.clocks)}

	outcome, fresh := u.sampled(t, &l, from)
	known := old.At(u.local, 0)
	uncertain := known.Latest.Sub(known.Earliest) + fresh
	slack := int64(0)
	switch outcome {
	case Contradicted:
		if by == 0 || l.Epoch() != 0 || l.Jumps() != 1 {
			t.Fatalf("Add = contradicted, epoch %d, jumps %d after a jump by %v, want epoch 0, jumps 1", l.Epoch(), l.Jumps(), time.Duration(by))
		}
	case Narrowed:
		if time.Duration(size) > uncertain {
			t.Fatalf("Add = narrowed after a jump by %v, want it noticed: only %v was uncertain", time.Duration(by), uncertain)
		}
		slack = size
	default:
		t.Fatalf("Add = %v, want contradicted or narrowed", outcome)
	}
	for range rapid.IntRange(0, 4).Draw(t, "samples after") {
		if len(l.clocks) == 1 && l.Epoch() == 0 {
			slack = size // Drift, or a sample that says little, has reconciled the clocks.
		}
		if before >= Confirm {
			u.within(t, &l, 0, u.store-by, slack)
		}
		u.within(t, &l, 0, u.store, slack)
		u.within(t, &l, l.Epoch(), u.store, slack)
		u.drifting(t, 10*time.Minute)
		u.sampled(t, &l, from)
	}
}

// dropsWrongAnswers: answers that are wrong by any amount, now and then, change nothing
// for long. The interval always contains store time, and when as many good samples came
// in a row as confirm a clock, it is no wider than one of them says.
func dropsWrongAnswers(t *rapid.T) {
	var l Line
	var u universe
	good := server{name: "a"}
	for range Confirm {
		u.sampledWithin(t, &l, good, time.Second)
	}
	for range rapid.IntRange(1, 6).Draw(t, "rounds") {
		u.drifting(t, 10*time.Minute)
		wrong := good
		for range rapid.IntRange(0, Confirm-1).Draw(t, "wrong answers") {
			wrong.off = int64(rapid.SampledFrom([]time.Duration{-24 * time.Hour, -time.Hour, -time.Minute, time.Minute, time.Hour, 240 * time.Hour}).Draw(t, "off"))
			u.sampledWithin(t, &l, wrong, time.Second)
			u.within(t, &l, 0, u.store, 0)
		}
		narrowest := time.Duration(math.MaxInt64)
		for range Confirm {
			_, wide := u.sampledWithin(t, &l, good, time.Second)
			narrowest = min(narrowest, wide)
			u.within(t, &l, 0, u.store, 0)
		}
		const drifted = 20 * ms // twice MaxDrift, in three ways there and back
		if i := l.At(u.local, 0); l.Epoch() != 0 || i.Latest.Sub(i.Earliest) > narrowest+drifted {
			t.Fatalf("after %d good samples: %v wide at epoch %d, want at most %v and no epoch", Confirm, i.Latest.Sub(i.Earliest), l.Epoch(), narrowest)
		}
	}
}

func TestPropertyTheIntervalContainsStoreTime(t *testing.T) {
	rapid.Check(t, contains)
}

func TestPropertyAJumpIsNoticedOrSmallerThanTheUncertainty(t *testing.T) {
	rapid.Check(t, noticesAJump)
}

func TestPropertyWrongAnswersAreDropped(t *testing.T) { rapid.Check(t, dropsWrongAnswers) }

// FuzzLine plays all properties of the line, by a script that the fuzzer writes.
func FuzzLine(f *testing.F) {
	f.Fuzz(fuzzed.Property(func(t *rapid.T) {
		rapid.SampledFrom([]func(*rapid.T){contains, noticesAJump, dropsWrongAnswers, containsTheLocalClock}).Draw(t, "property")(t)
	}))
}
