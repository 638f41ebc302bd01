package cosmospeer

import (
	"net"
	"os/exec"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// kind is how the peer is run.
var kind = peer.Kind{
	Name: "cosmos", Title: "Cosmos DB",
	Command: func(addr, data string, temporary bool) (*exec.Cmd, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		flags := []string{"--host=" + host, "--port=" + port, "--data=" + data}
		if temporary {
			flags = append(flags, "--remove")
		}
		return Command(flags...)
	},
}

// Server is a separate peer for one test: a process with the methods Addr, Kill,
// Restart, RestartEmpty, Pause and Resume. They must not be called at once.
type Server struct{ *peer.Server }

// Start starts a peer with empty data, which ends with the test. It skips the
// test if no peer can be had, or fails it if REQUIRE_STORES contains "cosmos".
// COSMOS_URI doesn't matter here: an account that others use can't be killed.
func Start(t testing.TB) *Server {
	t.Helper()
	return &Server{kind.Start(t)}
}

// URI is where the peer listens, in the form that store/cosmos takes, without
// database and container. It stays the same when the peer is restarted.
func (s *Server) URI() string { return "cosmos://" + s.Addr() + "/?insecureHTTP=true" }
