//go:build unix

package mongopeer

import (
	"os"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// While many tests run, a port that was free when it was chosen for a server may be taken before the
// server listens.
func TestServersWhosePortsAreTakenGetOthers(t *testing.T) {
	withStandIn(t)
	dir := t.TempDir()
	t.Setenv(takenEnv, dir)
	s, c := StartSet(t, SetOptions{}), StartCluster(t)
	if _, err := ask(t.Context(), c.URI(), bson.D{{Key: "hello", Value: 1}}); err != nil {
		t.Errorf("hello to the router = %v, want nil", err)
	}
	starts := 0
	for _, set := range append(c.sets, s) {
		for _, m := range set.members {
			text := noted(t, m, "started")
			wantParts(t, "flags", text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:], "--port "+strings.TrimPrefix(peer.Local(m.port), "127.0.0.1:")+" ")
			starts += strings.Count(text, "\n")
		}
	}
	taken, err := os.ReadDir(dir)
	if err != nil || len(taken) != 5 || starts != 6+4 {
		t.Errorf("%v found their port taken, %v, and %d starts of six members, want four of them and the router, and ten starts", taken, err, starts)
	}
	if err := os.Remove(dir + "/rs0"); err != nil {
		t.Fatal(err)
	}
	s.Kill(1)
	s.Restart(1)
	if p := s.Primary(); p != 0 {
		t.Errorf("Primary() after Restart() = %d, want 0", p)
	}
	if got := strings.Count(noted(t, s.members[1], "started"), "\n"); got < 3 {
		t.Errorf("the killed member was started %d times, want twice more", got)
	}
}

func TestPortsThatAreAlwaysTakenAreReported(t *testing.T) {
	withStandIn(t)
	t.Setenv(takenEnv, "always")
	s, err := newSet(os.Args[0], t.TempDir(), SetOptions{Members: 1})
	t.Cleanup(func() { s.end(nil) })
	if err == nil {
		t.Fatal("a set whose ports are always taken = nil, want an error")
	}
	wantParts(t, "error", err.Error(), "the port is taken", "address already in use", "--port ")
	if got := strings.Count(noted(t, s.members[0], "started"), "\n"); got != mostPorts {
		t.Errorf("the member was started %d times, want %d", got, mostPorts)
	}
}
