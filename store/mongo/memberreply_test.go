package mongo

import (
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
