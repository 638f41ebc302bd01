package mongo

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/skew"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

// skewOf is that of a stamp.
func skewOf(t *testing.T, l *Ledger) time.Duration {
	t.Helper()
	s, err := l.Now(within(t, patience))
	must(t, "Now()", err)
	return s.Skew
}

func wantSkew(t *testing.T, l *Ledger, least, most time.Duration) {
	t.Helper()
	if got := skewOf(t, l); got < least || got > most {
		t.Errorf("Now() has skew %v, want %v to %v", got, least, most)
	}
}

// slack is what the milliseconds of two clocks, and some seconds of drift, add to what is measured.
const slack = 5 * time.Millisecond

func TestSkewIsHowFarTheMembersClocksAreApart(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		off   []time.Duration
		mute  bool // one more, which can't be asked
		skew  time.Duration
		least time.Duration
	}{
		{name: "one member", off: []time.Duration{time.Hour}},
		{name: "one member, whatever is assumed", off: []time.Duration{0}, skew: 10 * time.Second},
		{name: "within 2 ms", off: []time.Duration{0, ms, -ms}},
		{name: "80 ms ahead", off: []time.Duration{0, 80 * ms, 0}, least: 80 * ms},
		{name: "3 s ahead", off: []time.Duration{0, 0, 3 * time.Second}, least: 3 * time.Second},
		{name: "the primary 3 s ahead", off: []time.Duration{3 * time.Second, 0, 0}, least: 3 * time.Second},
		{name: "the primary 3 s behind", off: []time.Duration{-3 * time.Second, 80 * ms}, least: 3080 * ms},
		{name: "more than is assumed", off: []time.Duration{0, 80 * ms}, skew: 20 * ms, least: 80 * ms},
		{name: "one can't be asked", off: []time.Duration{0, ms}, mute: true, least: defaultSkew},
		{name: "one can't be asked, and 300 ms are assumed", off: []time.Duration{0, ms}, mute: true, skew: 300 * ms, least: 300 * ms},
		{name: "0, 80 ms, 3 s, and one can't be asked", off: []time.Duration{0, 80 * ms, 3 * time.Second}, mute: true, least: 3*time.Second + defaultSkew},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := serveClocks(t, c.off...)
			if c.mute {
				s.elect(0, append(s.addresses(), network.Address())...)
			}
			l := s.open(Options{ServerSkew: c.skew})
			wantSkew(t, l, c.least, c.least+slack) // A worker that has just started.
			wantSkew(t, l, c.least, c.least+slack)
		})
	}
}

// Where clocks agree within 2 ms, the skew is small: a boundary widens by twice of it.
func TestClocksThatAgreeCostLittleAtABoundary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serveClocksIn(t, clock.New(), 0, time.Millisecond, -time.Millisecond)
		for _, f := range s.members {
			f.slow.Store(int64(2 * time.Millisecond))
		}
		wantSkew(t, s.open(Options{}), time.Millisecond, 10*time.Millisecond)
	})
}

// A member is elected whose clock was set since it was asked.
func TestAMemberThatIsElectedIsMeasuredAnew(t *testing.T) {
	t.Parallel()
	s, _ := serveClocks(t, 0, 0, 0)
	l := s.open(Options{})
	wantSkew(t, l, 0, slack)
	s.off[1].Store(int64(3 * time.Second))
	s.elect(1, s.addresses()...)
	// The driver finds the new primary when the old one says that it is none.
	var stamp store.Stamp
	suites.Eventually(t, "a stamp of the new primary", func() bool {
		var err error
		stamp, err = l.Now(within(t, time.Second)) // It would wait for the new primary by the mock clock.
		return err == nil && stamp.Server == s.members[1].addr
	})
	if stamp.Skew < 3*time.Second || stamp.Skew > 3*time.Second+slack {
		t.Errorf("the first stamp of the new primary, 3s ahead, has skew %v", stamp.Skew)
	}
}

func TestAMemberThatJoinsIsAskedBeforeTheNextStamp(t *testing.T) {
	t.Parallel()
	s, _ := serveClocks(t, 0, 0, 3*time.Second)
	s.elect(0, s.addresses()[:2]...)
	l := s.open(Options{})
	wantSkew(t, l, 0, slack)
	s.elect(0, s.addresses()...)
	wantSkew(t, l, 3*time.Second, 3*time.Second+slack)
	s.elect(0, s.addresses()[:2]...)
	wantSkew(t, l, 0, slack)
}

// ticking is a clock on which a microsecond passes with each look at how long something took.
type ticking struct {
	*clock.Mock
	looks *atomic.Int64
}

func (c ticking) Since(t time.Time) time.Duration {
	return c.Mock.Since(t) + time.Duration(c.looks.Add(1))*time.Microsecond
}

// The first that shows a jump is a member which was asked after the primary. What the primary said
// before counts no more.
func TestAJumpThatAMemberShowsHasThePrimaryAskedAgain(t *testing.T) {
	t.Parallel()
	mock := clock.NewMock()
	s := serveClocksIn(t, ticking{mock, &atomic.Int64{}}, 0, 0)
	var late atomic.Bool
	s.members[0].now = func() time.Time {
		if late.CompareAndSwap(true, false) {
			mock.Add(skew.Fresh) // It answers when the other member is to be asked again.
		}
		return mock.Now()
	}
	l := s.open(Options{})
	wantSkew(t, l, 0, slack)
	s.off[1].Store(int64(time.Hour))
	late.Store(true)
	wantSkew(t, l, time.Hour, time.Hour+slack)
	if late.Load() {
		t.Error("the primary's answer was not late: this shows nothing")
	}
}

func TestAClockThatIsOffIsNamed(t *testing.T) {
	t.Parallel()
	s, mock := serveClocks(t, 0, 80*time.Millisecond, 3*time.Second)
	l := s.open(Options{})
	if got := l.Warning(); got != "" {
		t.Errorf("Warning() before the first stamp = %q", got)
	}
	skewOf(t, l)
	for _, want := range []string{"the clock of " + s.members[2].addr + " is ", "s ahead of that of " + s.members[1].addr, "100ms"} {
		if got := l.Warning(); !strings.Contains(got, want) {
			t.Errorf("Warning() = %q, want %q in it", got, want)
		}
	}
	if got := l.Warning(); strings.Contains(got, s.members[0].addr) || strings.Contains(got, "\n") {
		t.Errorf("Warning() = %q, want one line that names no other member", got)
	}
	s.off[2].Store(0)
	mock.Add(time.Minute)
	skewOf(t, l)
	if got := l.Warning(); got != "" {
		t.Errorf("Warning() when the clock is right = %q", got)
	}
}

func TestAMemberThatCannotBeAskedIsNamed(t *testing.T) {
	t.Parallel()
	s, mock := serveClocks(t, 0, 0)
	gone, mute := network.Address(), silent(t)
	s.elect(0, append(s.addresses(), gone)...)
	l := s.open(Options{ServerSkew: 300 * time.Millisecond})
	documenttest.Equal(t, "Note() before a stamp", l.Note(), "")
	skewOf(t, l)
	documenttest.Equal(t, "Note()", l.Note(), "no clock can be asked for of "+gone+" (connection refused): 300ms are assumed")
	documenttest.Equal(t, "Warning()", l.Warning(), "")

	s.elect(0, append(s.addresses(), mute)...)
	done := make(chan struct{})
	go func() { defer close(done); skewOf(t, l) }()
	for waiting := true; waiting; {
		select {
		case <-done:
			waiting = false
		case <-time.After(time.Millisecond):
			// Time stands still while one is asked that answers, however busy the machine is.
			l.members.mu.Lock()
			alone := len(l.members.under) == 1 && l.members.under[mute] != nil
			l.members.mu.Unlock()
			if alone {
				mock.Add(askWithin)
			}
		}
	}
	documenttest.Equal(t, "Note() of one that is silent", l.Note(), "no clock can be asked for of "+mute+" (no answer within 1.5s): 300ms are assumed")

	s.elect(0, s.addresses()...)
	skewOf(t, l)
	documenttest.Equal(t, "Note() once all answer", l.Note(), "")
}
