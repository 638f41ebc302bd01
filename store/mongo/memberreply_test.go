package mongo

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/benbjohnson/clock"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// The names of members may lead to other servers here, as in a container's network.
func TestAMemberMustAnswerByItsName(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]bson.E{
		"another member": {Key: "me", Value: "db7.internal:27017"},
		"another set":    {Key: "setName", Value: "rs1"},
		"no name":        {Key: "me", Value: nil},
		"no time":        {Key: "localTime", Value: "noon"},
		"a refusal":      {Key: "ok", Value: 0.0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := serveClocks(t, 0, 3*time.Second)
			other := s.members[1]
			other.greet(append(slices.DeleteFunc(other.greeting, func(e bson.E) bool { return e.Key == change.Key }), change))
			wantSkew(t, s.open(Options{}), defaultSkew, defaultSkew+slack)
		})
	}
}

func TestMembersThatCannotBeReachedByOurselvesAreAssumed(t *testing.T) {
	t.Parallel()
	s, _ := serveClocks(t, 0, 0)
	l := s.open(Options{Client: dial(t, "mongodb://"+s.members[0].addr+"/?replicaSet=rs0")})
	wantSkew(t, l, defaultSkew, defaultSkew)
	if got := asked(s.members[1]); got != 0 {
		t.Errorf("a member was asked %d times past the caller's client", got)
	}
}

// A service that speaks MongoDB's protocol has one address, and may have many clocks.
func TestAProcessThatIsNotNamedHasNoClockOfItsOwn(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	f.greet(member(f.addr))
	wantSkew(t, f.open(Options{}), defaultSkew, defaultSkew)
	wantSkew(t, f.open(Options{ServerSkew: time.Second}), time.Second, time.Second)
}

func TestMembersAreAskedOverTLS(t *testing.T) {
	t.Parallel()
	https := httptest.NewTLSServer(nil)
	t.Cleanup(https.Close)
	s := &memberClocks{clock: clock.NewMock()}
	for i := range 2 {
		f := serve(t, &fakeServer{secured: https.TLS, now: func() time.Time { return s.clock.Now().Add(time.Duration(i) * 3 * time.Second) }})
		s.members = append(s.members, f)
	}
	s.elect(0, s.addresses()...)
	l := s.open(Options{URI: "mongodb://" + s.members[0].addr + "/?replicaSet=rs0&tls=true&tlsInsecure=true"})
	wantSkew(t, l, 3*time.Second, 3*time.Second+slack)
	if got := asked(s.members[1]); got != 1 {
		t.Errorf("the other member was asked %d times, want 1", got)
	}
	strict := dialer(options.Client().ApplyURI("mongodb://" + s.members[1].addr + "/?tls=true"))
	if conn, err := strict(t.Context(), s.members[1].addr); err == nil {
		_ = conn.Close()
		t.Error("a member whose certificate nobody signed is trusted")
	}
}

// recordedHello is a secondary's reply to hello, recorded from MongoDB 5.0.7.
const recordedHello = `{"topologyVersion": {"counter": 20}, "hosts": ["127.0.0.1:27201", "127.0.0.1:27202", "127.0.0.1:27203"],
	"setName": "rs0", "setVersion": 1, "isWritablePrimary": false, "secondary": true, "primary": "127.0.0.1:27202",
	"me": "127.0.0.1:27201", "lastWrite": {"lastWriteDate": {"$date": "2026-11-22T03:22:59Z"}}, "maxBsonObjectSize": 16777216,
	"localTime": {"$date": "2026-11-22T03:23:01.816Z"}, "maxWireVersion": 13, "readOnly": false, "ok": 1}`

func TestTheReplyOfAMemberIsUnderstood(t *testing.T) {
	t.Parallel()
	var raw bson.Raw
	must(t, "UnmarshalExtJSON()", bson.UnmarshalExtJSON([]byte(recordedHello), false, &raw))
	g, err := greet("", raw)
	must(t, "greet()", err)
	want := "rs0 127.0.0.1:27201 [127.0.0.1:27201 127.0.0.1:27202 127.0.0.1:27203] true false"
	if got := fmt.Sprint(g.set, " ", g.me, " ", g.hosts, " ", g.named, " ", g.writable); got != want {
		t.Errorf("greet() of a recorded reply = %s, want %s", got, want)
	}
	if want := time.Date(2026, 11, 22, 3, 23, 1, 816_000_000, time.UTC); !g.time.Equal(want) {
		t.Errorf("greet() of a recorded reply has time %v, want %v", g.time, want)
	}
}
