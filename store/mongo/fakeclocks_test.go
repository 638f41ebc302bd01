package mongo

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// memberClocks is a replica set of fake servers, each with a clock of its own. They and their workers
// have one idea of how time passes: usually it stands still, so that what is measured is exact.
type memberClocks struct {
	clock   clock.Clock
	members []*fakeServer
	off     []*atomic.Int64 // of each member's clock
}

// serveClocks starts a set whose members' clocks are off by so much. The first one is the primary.
func serveClocks(t *testing.T, off ...time.Duration) (*memberClocks, *clock.Mock) {
	t.Helper()
	mock := clock.NewMock()
	mock.Set(time.UnixMilli(1_700_000_000_123))
	return serveClocksIn(t, mock, off...), mock
}

func serveClocksIn(t *testing.T, c clock.Clock, off ...time.Duration) *memberClocks {
	t.Helper()
	s := &memberClocks{clock: c}
	for _, by := range off {
		off := &atomic.Int64{}
		off.Store(int64(by))
		f := serve(t, &fakeServer{now: func() time.Time { return c.Now().Add(time.Duration(off.Load())) }})
		s.members, s.off = append(s.members, f), append(s.off, off)
	}
	s.elect(0, s.addresses()...)
	return s
}

func (s *memberClocks) addresses() (hosts []string) {
	for _, f := range s.members {
		hosts = append(hosts, f.addr)
	}
	return hosts
}

// elect makes a member the primary of a set of hosts.
func (s *memberClocks) elect(primary int, hosts ...string) {
	list := bson.A{}
	for _, h := range hosts {
		list = append(list, h)
	}
	for i, f := range s.members {
		f.greet(bson.D{
			{Key: "ismaster", Value: i == primary},
			{Key: "isWritablePrimary", Value: i == primary},
			{Key: "secondary", Value: i != primary},
			{Key: "setName", Value: "rs0"},
			{Key: "setVersion", Value: int32(1)},
			{Key: "electionId", Value: bson.NewObjectIDFromTimestamp(time.Unix(int64(1000+primary), 0))},
			{Key: "hosts", Value: list},
			{Key: "primary", Value: s.members[primary].addr},
			{Key: "me", Value: f.addr},
			{Key: "topologyVersion", Value: bson.D{{Key: "processId", Value: bson.NewObjectID()}, {Key: "counter", Value: int64(6)}}},
		})
	}
}

// open opens a ledger that finds the set by its primary.
func (s *memberClocks) open(o Options) *Ledger {
	if o.URI == "" && o.Client == nil {
		o.URI = "mongodb://" + s.members[0].addr + "/?replicaSet=rs0"
	}
	o.Clock = s.clock
	return s.members[0].open(o)
}

// asked counts our own questions to a member. The driver says more when it says hello.
func asked(f *fakeServer) int {
	ours := slices.DeleteFunc(f.sent("hello"), func(c bson.Raw) bool {
		elements, _ := c.Elements()
		return len(elements) != 2
	})
	return len(ours)
}

// silent is an address at which nothing answers.
func silent(t *testing.T) string {
	t.Helper()
	l := network.Listen(network.Address())
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}
