package mongopeer

import (
	"os/exec"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// kind is how the peer is run.
var kind = peer.Kind{
	Name: "mongo", Title: "MongoDB",
	Command: func(addr, data string, temporary bool) (*exec.Cmd, error) {
		path, err := program()
		if err != nil {
			return nil, err
		}
		flags := []string{"-addr", addr, "-data", data}
		if temporary {
			flags = append(flags, "-remove")
		}
		return exec.Command(path, flags...), nil
	},
}

// Server is a separate peer for one test: a process with the methods Addr, Kill,
// Restart, RestartEmpty, Pause and Resume. They must not be called at once.
type Server struct{ *peer.Server }

// Start starts a peer with empty data, which ends with the test. It skips the
// test if no peer can be had, or fails it if REQUIRE_STORES contains "mongo".
// MONGODB_URI doesn't matter here: a server that others use can't be killed.
func Start(t testing.TB) *Server {
	t.Helper()
	return &Server{kind.Start(t)}
}

// StartIn is Start for a harness that isn't a test, with the data in a folder that is empty. The server
// ends with the process. Its methods are End, Again, Freeze and Thaw then, in place of Kill, Restart,
// Pause and Resume.
func StartIn(data string) (*Server, error) {
	s, err := kind.StartIn(data)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// URI is where the peer listens. It stays the same when the peer is restarted.
func (s *Server) URI() string { return "mongodb://" + s.Addr() + "/" }
