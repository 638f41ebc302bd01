package mongo

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// fakeLink is the network between a client and a set in a bubble: pipes instead of sockets, so that
// testing/synctest sees when everything waits, and the bubble's clock goes on.
type fakeLink struct {
	set *fakeReplicaSet
	// far are the members that this client doesn't reach. Guarded by set.mu.
	far []*fakeMember
}

// fakeConn is one connection.
type fakeConn struct {
	net.Conn
	from *fakeLink
	to   *fakeMember
}

// inBubble listens nowhere: the clients of a bubble come by a fakeLink.
func inBubble(*fakeServer) {}

// DialContext connects to a member. The driver calls it.
func (l *fakeLink) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	s := l.set
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		switch {
		case m.addr != address:
			continue
		case s.over() || l.cutFrom(m):
			return nil, fmt.Errorf("dial %s: connection refused", address)
		}
		client, server := net.Pipe()
		s.conns = append(s.conns, fakeConn{server, l, m})
		s.talks.Go(func() { m.talk(server) })
		return client, ctx.Err()
	}
	return nil, fmt.Errorf("dial %s: no such host", address)
}

// cutFrom reports whether the client reaches a member no more. The lock is held.
func (l *fakeLink) cutFrom(m *fakeMember) bool {
	return m.down || slices.Contains(l.far, m)
}

// reachesOnly makes a client reach one member, or all again if that is nil.
func (l *fakeLink) reachesOnly(near *fakeMember) {
	l.set.mu.Lock()
	defer l.set.mu.Unlock()
	l.far = nil
	for _, m := range l.set.members {
		if near != nil && m != near {
			l.far = append(l.far, m)
		}
	}
	l.set.hangUp(func(c fakeConn) bool { return c.from == l && l.cutFrom(c.to) })
}

// hangUp breaks the connections of a kind. The lock is held.
func (s *fakeReplicaSet) hangUp(kind func(fakeConn) bool) {
	var left []fakeConn
	for _, c := range s.conns {
		if kind(c) {
			_ = c.Close()
		} else {
			left = append(left, c)
		}
	}
	s.conns = left
}

// over reports whether the test has ended.
func (s *fakeReplicaSet) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// connect is a client of a set in a bubble, and its network.
func (s *fakeReplicaSet) connect(t testing.TB) (*mongo.Client, *fakeLink) {
	t.Helper()
	l := &fakeLink{set: s}
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + s.members[0].addr + "," + s.members[1].addr + "/?replicaSet=rs0").SetDialer(l))
	must(t, "Connect()", err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client, l
}
