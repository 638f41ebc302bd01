package mongo

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// apartSet is a replica set in a bubble whose third member is 3 s ahead, and workers that measure
// it, each over its own link.
type apartSet struct {
	*fakeReplicaSet
	off  [3]atomic.Int64
	f    *fleet
	ctx  context.Context
	done chan struct{}
	slot time.Duration
}

func serveApart(ctx context.Context, t *testing.T, slot time.Duration) *apartSet {
	t.Helper()
	s := &apartSet{fakeReplicaSet: serveReplicaSet(t, inBubble), f: &fleet{t: t}, ctx: ctx, done: make(chan struct{}, 2), slot: slot}
	s.off[2].Store(int64(3 * time.Second))
	for i, m := range s.members {
		m.slow.Store(int64(2 * time.Millisecond))
		m.now = func() time.Time { return time.Now().Add(time.Duration(s.off[i].Load())) }
	}
	return s
}

// work starts a worker that finds the set by some members, and doesn't reach those that are far.
func (s *apartSet) work(t *testing.T, name, seeds string, far ...*fakeMember) *fakeLink {
	t.Helper()
	every, err := slots.Every(s.slot)
	must(t, "Every()", err)
	link := &fakeLink{set: s.fakeReplicaSet, far: far}
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + seeds + "/?replicaSet=rs0").SetDialer(link))
	must(t, "Connect()", err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	l := open(t, Options{Client: client})
	l.members = newMembers(clock.New(), defaultSkew, func(ctx context.Context, host string) (net.Conn, error) {
		return link.DialContext(ctx, "tcp", host)
	})
	go func() {
		defer func() { s.done <- struct{}{} }()
		_ = workerlease.NewClient(l, workerlease.ClientOptions{}).Run(s.ctx,
			workerlease.Options{WorkerType: "job", InstanceID: name, Schedule: every}, s.f.work(name))
	}()
	return link
}

// cutOff puts a member out of a worker's reach.
func (s *apartSet) cutOff(link *fakeLink, m *fakeMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	link.far = []*fakeMember{m}
	s.hangUp(func(c fakeConn) bool { return c.from == link && link.cutFrom(c.to) })
}

// led counts how often a worker has begun to work.
func (s *apartSet) led() int {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return s.f.led
}

// elected makes the third member the primary. The worker that uses link can't reach it. Then worker B
// starts, which reaches no other member. Each of the two workers must lead in its time.
func (s *apartSet) elected(t *testing.T, link *fakeLink) {
	t.Helper()
	before := s.led()
	s.cutOff(link, s.members[2])
	s.stepDown(s.members[0])
	s.elect(s.members[2])
	s.work(t, "B", s.members[2].addr, s.members[0], s.members[1])
	time.Sleep(s.slot * 3 / 2)
	if before == 0 || s.led() == before {
		t.Errorf("%d leases before the election and %d in all, want some before and after it", before, s.led())
	}
}

// apart plays what happens to a replica set whose clocks are apart, up to the end of its workers.
func apart(t *testing.T, slot time.Duration, play func(t *testing.T, s *apartSet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := serveApart(ctx, t, slot)
		play(t, s)
		cancel()
		<-s.done
		<-s.done
	})
}

// A leads. It has measured that the third member is 3 s ahead, but can't reach it any more. Then the
// primary's clock is set. Or all clocks move by less than they are apart, as if A's machine had been
// paused.
func TestNoTwoLeadByAMemberThatOneLostSightOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		first  time.Duration
		others time.Duration
	}{
		{"nothing is set", 0, 0},
		{"one is ahead", 200 * time.Millisecond, 0},
		{"one is behind", -200 * time.Millisecond, 0},
		{"A is paused for a second", time.Second, time.Second},
		{"A is paused for as long as they are apart", 3 * time.Second, 3 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			apart(t, time.Minute, func(t *testing.T, s *apartSet) {
				link := s.work(t, "A", s.members[0].addr+","+s.members[1].addr)
				time.Sleep(90 * time.Second)
				if c.others == 0 {
					s.cutOff(link, s.members[2])
				}
				time.Sleep(time.Minute)
				for i, by := range []time.Duration{c.first, c.others, c.others} {
					s.off[i].Add(int64(by))
				}
				time.Sleep(5*time.Minute + 10*time.Second)
				s.f.mu.Lock()
				if s.f.working != "A" {
					t.Errorf("%q leads, want A: this shows nothing", s.f.working)
				}
				s.f.mu.Unlock()
				s.elected(t, link)
			})
		})
	}
}

// The third member was down when A started, so A's first stamps don't include its clock. Once the
// member is back, those stamps no longer limit what its clock may show.
func TestNoTwoLeadByAMemberThatIsBack(t *testing.T) {
	t.Parallel()
	apart(t, 10*time.Minute, func(t *testing.T, s *apartSet) {
		s.kill(s.members[2])
		time.Sleep(3 * time.Minute)
		link := s.work(t, "A", s.members[0].addr+","+s.members[1].addr)
		time.Sleep(time.Minute)
		s.start(s.members[2])
		time.Sleep(8 * time.Minute)
		s.elected(t, link)
	})
}
