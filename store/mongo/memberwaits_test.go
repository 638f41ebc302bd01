package mongo

import (
	"context"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/suites"
)

func TestAStampAsksEachMemberOnceInTwoSeconds(t *testing.T) {
	suites.RealTime(t)
	t.Parallel()
	s, mock := serveClocks(t, 0, 0, 0)
	l := s.open(Options{})
	for n, wait := range []time.Duration{0, time.Second, 3 * time.Second, time.Hour} {
		mock.Add(wait)
		skewOf(t, l)
		want := []int{1, 1, 2, 3}[n]
		for i, f := range s.members[1:] {
			if got := settled(func() int { return asked(f) }, want); got != want {
				t.Errorf("after stamp %d, member %d was asked %d times, want %d", n+1, i+1, got, want)
			}
		}
	}
	if got := asked(s.members[0]); got != 0 {
		t.Errorf("the primary was asked %d times in addition to the stamps, want 0", got)
	}
	for range 5 {
		_, _, err := l.Tail(within(t, patience), "job", 2)
		must(t, "Tail()", err)
	}
	if got := asked(s.members[1]); got != 3 {
		t.Errorf("after reads, a member was asked %d times, want 3 as before: only stamps need it", got)
	}
}

// settled waits up to a second for a growing number to reach want, and returns it.
func settled(read func() int, want int) int {
	for range 100 {
		if read() >= want {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return read()
}

func TestAMemberThatDoesNotAnswerDelaysOneStamp(t *testing.T) {
	suites.RealTime(t)
	t.Parallel()
	s := serveClocksIn(t, clock.New(), 0, 0)
	s.elect(0, append(s.addresses(), silent(t))...)
	l := s.open(Options{})
	began := time.Now()
	wantSkew(t, l, defaultSkew, defaultSkew+busy)
	if took := time.Since(began); took < askWithin || took > askWithin+10*time.Second {
		t.Errorf("the first stamp took %v, want that it waits %v for the member", took, askWithin)
	}
	began = time.Now()
	for range 5 {
		wantSkew(t, l, defaultSkew, defaultSkew+busy)
	}
	// Each of them would take askWithin if it waited; the rest is for a busy machine.
	if took := time.Since(began); took > 4*askWithin {
		t.Errorf("five more stamps took %v, want that they don't wait", took)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); must(t, "Close()", l.Close(context.Background())) }()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("Close() hangs while a member is being asked")
	}
}

func TestAStampThatCannotWaitForAllMembersFails(t *testing.T) {
	suites.RealTime(t)
	t.Parallel()
	s := serveClocksIn(t, clock.New(), 0, 0)
	s.elect(0, append(s.addresses(), silent(t))...)
	l := s.open(Options{})
	ctx, cancel := context.WithTimeout(t.Context(), askWithin/3)
	defer cancel()
	if stamp, err := l.Now(ctx); err == nil {
		t.Errorf("Now() = %+v before a member had time to answer, want an error", stamp)
	}
	wantSkew(t, l, defaultSkew, defaultSkew+busy)
}
