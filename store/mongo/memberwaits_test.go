package mongo

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/internal/documenttest"
)

func TestAStampAsksEachMemberOnceInTwoSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serveClocksIn(t, clock.New(), 0, 0, 0)
		l := s.open(Options{})
		for n, wait := range []time.Duration{0, time.Second, 3 * time.Second, time.Hour} {
			time.Sleep(wait)
			skewOf(t, l)
			synctest.Wait()
			for i, f := range s.members[1:] {
				documenttest.Equal(t, fmt.Sprintf("questions to member %d after stamp %d", i+1, n+1), asked(f), []int{1, 1, 2, 3}[n])
			}
		}
		documenttest.Equal(t, "questions to the primary besides the stamps", asked(s.members[0]), 0)
		for range 5 {
			_, _, err := l.Tail(within(t, patience), "job", 2)
			must(t, "Tail()", err)
		}
		documenttest.Equal(t, "questions to a member after reads, which need none", asked(s.members[1]), 3)
	})
}

func TestAMemberThatDoesNotAnswerDelaysOneStamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serveClocksIn(t, clock.New(), 0, 0)
		s.elect(0, append(s.addresses(), silent(t))...)
		l := s.open(Options{})
		for n := range 6 {
			began := time.Now()
			wantSkew(t, l, defaultSkew, defaultSkew+slack)
			documenttest.Equal(t, fmt.Sprintf("delay of stamp %d", n+1), time.Since(began), []time.Duration{askWithin, 0}[min(n, 1)])
		}
		time.Sleep(time.Minute) // It is asked again.
		skewOf(t, l)
		began := time.Now()
		must(t, "Close()", l.Close(context.Background()))
		if took := time.Since(began); took > 2*heartbeatGrace {
			t.Errorf("Close() while a member is being asked took %v, want that it doesn't wait for it", took)
		}
		time.Sleep(time.Minute) // The heartbeats end.
	})
}

func TestAStampThatCannotWaitForAllMembersFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serveClocksIn(t, clock.New(), 0, 0)
		s.elect(0, append(s.addresses(), silent(t))...)
		l := s.open(Options{})
		if stamp, err := l.Now(within(t, askWithin/3)); err == nil {
			t.Errorf("Now() = %+v before a member had time to answer, want an error", stamp)
		}
		wantSkew(t, l, defaultSkew, defaultSkew+slack)
	})
}
