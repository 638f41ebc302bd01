package machine_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

func TestInsideNeedsTheWholeIntervalWithinTheWindowLessMargin(t *testing.T) {
	const ms, margin = time.Millisecond, 10 * time.Millisecond
	end := eve.Add(time.Second)
	for _, c := range []struct {
		earliest, latest time.Duration // of eve
		want             bool
	}{
		{0, 0, true},
		{-1, 0, false},
		{0, 989*ms - 1, true},
		{0, 989 * ms, false},
		{500 * ms, 2000 * ms, false},
	} {
		now := timeline.Interval{Earliest: eve.Add(c.earliest), Latest: eve.Add(c.latest)}
		if got := machine.Standard.Inside(now, eve, end, margin); got != c.want {
			t.Errorf("Inside([%v, %v], 0, 1s, 10ms) = %v, want %v", c.earliest, c.latest, got, c.want)
		}
		// A timer for what remains never fires after the last safe moment.
		remaining := machine.Standard.Remaining(now, end, margin)
		if last := 989*ms - c.latest; remaining > max(last, ms) || c.want && remaining == 0 {
			t.Errorf("Remaining at %v = %v, want at most %v", c.latest, remaining, last)
		}
	}
	if machine.Standard.Inside(timeline.Interval{}, time.Time{}, end, 0) {
		t.Error("Inside without knowing the time = true")
	}
}

func TestTimeoutIsAThirdOfTheLeadOrTwiceWhatOperationsTake(t *testing.T) {
	const s = time.Second
	reads := func(recent ...time.Duration) (all machine.Trips) {
		copy(all.Reads.Recent[:], recent)
		return all
	}
	cut := func(d time.Duration) machine.Trips { return machine.Trips{Reads: machine.Trip{Cut: d}} }
	for _, c := range []struct {
		every, lead time.Duration
		trips       machine.Trips
		want        time.Duration
	}{
		{every: s / 10, want: s / 4},
		{every: 3 * s, want: s / 4},
		{every: 6 * s, want: s / 2},
		{every: 300 * s, want: 10 * s / 3},
		{every: time.Hour, lead: 300 * s, want: 5 * s},
		{want: 5 * s},

		{every: 300 * s, trips: reads(s, s), want: 10 * s / 3},
		{every: 300 * s, trips: reads(s, 3*s, s), want: 6 * s},
		{every: 300 * s, trips: reads(10 * s), want: 15 * s}, // one and a half leads
		{every: 300 * s, trips: cut(5 * s), want: 10 * s},
		{every: 300 * s, trips: machine.Trips{Appends: machine.Trip{Cut: 5 * s}}, want: 10 * s / 3},
		{every: s, trips: reads(17 * s / 100), want: 34 * s / 100},
		{every: s, trips: reads(s / 3), want: 3 * s / 8},
		{every: time.Hour, lead: 300 * s, trips: reads(20 * s), want: 30 * s},
		{trips: cut(5 * s), want: 10 * s},
		{trips: cut(20 * s), want: 30 * s},
	} {
		m := machine.Machine{Config: machine.Config{Rules: &machine.Standard, Lead: c.lead}}
		state := machine.State{Pending: machine.ReadingHead, Trips: c.trips}
		if c.every > 0 {
			m.Schedule = slots.Must(slots.Every(c.every))
			state.Bid.Slot = m.Schedule.At(eve)
		}
		if got := m.Timeout(&state); got != c.want {
			t.Errorf("Timeout(every %v, lead %v, %v) = %v, want %v", c.every, c.lead, c.trips, got, c.want)
		}
	}
}

func TestAClaimLandsAfterARoundTripAndHalfOfAnotherAndASample(t *testing.T) {
	const ms = time.Millisecond
	trip := func(recent ...time.Duration) (t machine.Trip) {
		copy(t.Recent[:], recent)
		return t
	}
	for _, c := range []struct {
		reads, appends machine.Trip
		timed          time.Duration
		want           time.Duration
	}{
		{},
		{reads: trip(100 * ms), timed: 150 * ms, want: 250 * ms},
		{reads: trip(100*ms, 80*ms, 120*ms), timed: 120 * ms, want: 200 * ms},
		{reads: trip(100 * ms), appends: trip(100 * ms), timed: 150 * ms, want: 250 * ms},
		// The store takes 150 ms for an append.
		{reads: trip(100 * ms), appends: trip(300*ms, 250*ms), timed: 300 * ms, want: 400 * ms},
		{reads: trip(100 * ms), appends: trip(10 * ms), timed: 100 * ms, want: 200 * ms},
		{appends: trip(2 * ms), timed: 2 * ms, want: 2 * ms},
	} {
		trips := machine.Trips{Reads: c.reads, Appends: c.appends}
		if timed, got := machine.Standard.Landing(trips, true), machine.Standard.Landing(trips, false); timed != c.timed || got != c.want {
			t.Errorf("Landing(%v) = %v, and with a sample %v, want %v and %v", trips, timed, got, c.timed, c.want)
		}
	}
}

func TestBackoffGrowsWithinBoundsAndHonoursTheStore(t *testing.T) {
	throttled := func(d time.Duration) error {
		return &store.ThrottledError{RetryAfter: d, Err: errors.New("429")}
	}
	for _, c := range []struct {
		name        string
		every       time.Duration
		failures    int
		err         error
		least, most time.Duration
	}{
		{"first", 5 * time.Minute, 0, errTimeout, 50 * time.Millisecond, 100 * time.Millisecond},
		{"third", 5 * time.Minute, 2, errTimeout, 200 * time.Millisecond, 400 * time.Millisecond},
		{"many", 5 * time.Minute, math.MaxInt, errTimeout, 2500 * time.Millisecond, 5 * time.Second},
		{"short slots", 3 * time.Second, 100, errTimeout, 300 * time.Millisecond, 375 * time.Millisecond},
		{"slots of 6.4 s", 6400 * time.Millisecond, 100, errTimeout, 500 * time.Millisecond, 800 * time.Millisecond},
		{"shortest slots", 100 * time.Millisecond, 100, errTimeout, 10 * time.Millisecond, 12500 * time.Microsecond},
		{"the store asks for more", 5 * time.Minute, 0, throttled(20 * time.Second), 20 * time.Second, 20 * time.Second},
		{"the store asks for less", 5 * time.Minute, 3, throttled(time.Millisecond), 400 * time.Millisecond, 800 * time.Millisecond},
		{"the store asks for ever", 24 * time.Hour, 0, throttled(1<<63 - 1), time.Hour, time.Hour},
		{"the store asks for more than a slot", 5 * time.Minute, 0, throttled(time.Hour), 290 * time.Second, 291 * time.Second},
		{"the store is confused", 5 * time.Minute, 0, throttled(-1 << 63), 50 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := machine.Machine{Config: plain()}
			m.Schedule = slots.Must(slots.Every(c.every))
			for _, draw := range []byte{0, 127, 255} {
				at := machine.Moment{Local: time.Hour}
				for i := range at.Draw {
					at.Draw[i] = draw
				}
				s := machine.State{Pending: machine.Sampling, Bid: machine.Bid{Slot: m.Schedule.At(eve)}, Retries: machine.Retries{Tries: c.failures}}
				s, _ = m.Step(s, at, machine.Sampled{Err: c.err})
				if got := s.Retries.Until - at.Local; got < c.least || got > c.most {
					t.Errorf("draw %d: waits %v, want %v … %v", draw, got, c.least, c.most)
				}
				if got := s.Retries.Until - at.Local; c.err == errTimeout && (draw == 0 && got != c.most || draw == 255 && got > c.least*101/100) {
					t.Errorf("draw %d: waits %v, want all of %v … %v", draw, got, c.least, c.most)
				}
			}
		})
	}
}

func TestNothingLeadsOverAFreeKey(t *testing.T) {
	for _, c := range []struct {
		lower, upper int64
		want         bool
	}{{1, 2, true}, {6, 7, true}, {5, 7, false}, {1, 1 << 40, false}, {0, 1, true}, {0, 2, false}} {
		if got := machine.Standard.Leads(store.Record{Seq: c.lower}, store.Record{Seq: c.upper}); got != c.want {
			t.Errorf("Leads(%d, %d) = %v, want %v", c.lower, c.upper, got, c.want)
		}
	}
}

// What is wrong with a hostile document must not get into the way of the record
// that supersedes it.
func TestClaimsAreSentHalfAsFarAheadAsTheyAreObeyed(t *testing.T) {
	if got := machine.Standard.Ahead; got != 2*priority.MaxLead {
		t.Errorf("Standard.Ahead = %v, want twice %v", got, priority.MaxLead)
	}
}

func TestAResetIsValidWhateverThePoisonSays(t *testing.T) {
	for name, defect := range map[string]string{
		"NUL":             "window\x00Start",
		"broken UTF-8":    "\xff\xfe\x80",
		"long":            strings.Repeat("x", 1<<20),
		"cut in the rune": strings.Repeat("é", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(plain())
			w.ledger[1] = store.Record{WorkerType: "mail", Seq: 1, Defect: defect}
			must(t, w.event(machine.Wake{}))
			for range 100 {
				must(t, w.goOn())
				if r, ok := w.ledger[2]; ok {
					if r.Kind != store.KindReset || strings.ToValidUTF8(r.Metadata, "") != r.Metadata || len(r.Metadata) > 512 {
						t.Errorf("record 2 = %+v, want a reset with short and valid metadata", r)
					}
					return
				}
			}
			t.Error("the poison was never superseded")
		})
	}
}

func TestNamesOfOpsStagesReasonsAndNotes(t *testing.T) {
	for got, want := range map[string]string{
		machine.Nothing.String(): "nothing", machine.Probing.String(): "get for trim",
		machine.Aiming.String(): "aiming", machine.Halted.String(): "halted",
		machine.WindowEnded.String(): "window ended", machine.Poisoned.String(): "poison",
		machine.Reason(0).String(): "unknown", machine.Reason(99).String(): "unknown",
		machine.Claimed.String(): "claimed", machine.Mismatch.String(): "mismatch",
		machine.What(0).String(): "unknown", machine.What(99).String(): "unknown",
	} {
		if got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

// The clock may jump between the machine's Allocate and what comes of it. Both
// callbacks are called then, in order, or none.
func TestAJumpRightBehindAllocateLeavesTheCallbacksPaired(t *testing.T) {
	start := time.Date(2025, 1, 1, 0, 5, 0, 0, time.UTC)
	slot := slots.Slot{Start: start, End: start.Add(5 * time.Minute)}
	m := machine.Machine{Config: plain()}
	s := machine.State{
		Bid:  machine.Bid{Slot: m.Schedule.Next(start), Turn: slot.End.Add(-10 * time.Second)},
		Hold: machine.Hold{Next: machine.Term{Seq: 1, Slot: slot, Start: slot.Start, End: slot.End, Token: 1, Claim: "c", Own: true}},
	}
	now := start.Add(time.Second)
	at := machine.Moment{Now: timeline.Interval{Earliest: now, Latest: now}, Local: time.Hour}
	s, actions := m.Step(s, at, machine.Wake{})
	if _, ok := actions[0].(machine.Allocate); !ok {
		t.Fatalf("actions = %v, want Allocate", actions)
	}
	at.Epoch, at.Jumps = 1, 1
	for _, c := range []struct {
		event     machine.Event
		expires   int
		told      []machine.What
		becauseOf machine.Reason
	}{
		{machine.Skipped{}, 0, []machine.What{machine.Missed}, machine.TooLate},
		{machine.Skipped{Unwanted: true}, 0, nil, 0},
		{machine.Began{}, 1, []machine.What{machine.Allocated, machine.Expired}, machine.ClockJumped},
	} {
		_, actions := m.Step(s, at, c.event)
		expires, told := 0, []machine.What(nil)
		for _, a := range actions {
			switch a := a.(type) {
			case machine.Expire:
				expires++
			case machine.Tell:
				told = append(told, a.Note.What)
				if a.Note.Why != 0 && a.Note.Why != c.becauseOf {
					t.Errorf("Step(%T): why = %v, want %v", c.event, a.Note.Why, c.becauseOf)
				}
			}
		}
		if expires != c.expires || !slices.Equal(told, c.told) {
			t.Errorf("Step(%T) = %d times Expire, told %v, want %d, %v", c.event, expires, told, c.expires, c.told)
		}
	}
}
