package mongo

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store/internal/documenttest"
)

// shut makes a member refuse to say hello, until back is called.
func shut(f *fakeServer) (back func()) {
	f.mu.Lock()
	was := f.greeting
	f.mu.Unlock()
	f.greet(append(slices.Clone(was), bson.E{Key: "ok", Value: 0.0}))
	return func() { f.greet(was) }
}

func TestAMemberThatFailedAndIsBackIsWaitedFor(t *testing.T) {
	t.Parallel()
	s, mock := serveClocks(t, 0, 0, 3*time.Second)
	back := shut(s.members[2])
	l := s.open(Options{})
	wantSkew(t, l, defaultSkew, defaultSkew+slack)
	back()
	mock.Add(time.Minute)
	wantSkew(t, l, 3*time.Second, 3*time.Second+slack)
}

// A stamp that comes long after the failure waits for a moment, since the member may be back.
func TestAMemberThatIsGoneDelaysAStampByAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serveClocksIn(t, clock.New(), 0, 0)
		s.elect(0, append(s.addresses(), silent(t))...)
		l := s.open(Options{})
		wantSkew(t, l, defaultSkew, defaultSkew+slack)
		time.Sleep(time.Minute)
		began := time.Now()
		skewOf(t, l)
		documenttest.Equal(t, "delay of a stamp a minute after a member failed", time.Since(began), mostGrace)
	})
}

// Two stamps are made at once. The hello of one was sent before a member joined, and is handled last.
func TestAnOlderHelloRemovesNoMember(t *testing.T) {
	t.Parallel()
	m := newMembers(clock.NewMock(), defaultSkew, nil)
	left := func(sent time.Duration, hosts ...string) int {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.keep(greeting{me: "a:1", set: "rs0", hosts: hosts}, sent, sent+time.Millisecond)
		return len(m.hosts)
	}
	left(2*time.Millisecond, "a:1", "b:1")
	documenttest.Equal(t, "others by a hello from before the newest came", left(time.Millisecond, "a:1"), 1)
	documenttest.Equal(t, "others by a newer hello", left(9*time.Millisecond, "a:1"), 0)
}
