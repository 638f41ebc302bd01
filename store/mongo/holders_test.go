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
// it over links of their own.
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

// A leads, and has seen that the third member is 3 s ahead, but reaches it no more. Then the
// primary's clock is set. The third member is elected, and B, which reaches it alone, starts.
func TestNoTwoLeadByAMemberThatOneLostSightOf(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{0, 200 * time.Millisecond, -200 * time.Millisecond} {
		t.Run(step.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				s := serveApart(ctx, t, time.Minute)
				link := s.work(t, "A", s.members[0].addr+","+s.members[1].addr)
				time.Sleep(90 * time.Second)
				s.cutOff(link, s.members[2])
				time.Sleep(time.Minute)
				s.off[0].Add(int64(step))
				time.Sleep(5*time.Minute + 10*time.Second)
				s.f.mu.Lock()
				if s.f.working != "A" {
					t.Errorf("%q leads, want A: this shows nothing", s.f.working)
				}
				s.f.mu.Unlock()
				s.stepDown(s.members[0])
				s.elect(s.members[2])
				s.work(t, "B", s.members[2].addr, s.members[0], s.members[1])
				time.Sleep(90 * time.Second)
				cancel()
				<-s.done
				<-s.done
			})
		})
	}
}
