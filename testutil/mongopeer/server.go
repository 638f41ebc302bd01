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
		path, err := Program()
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

// Server is a separate peer for one test: a process that can be killed, paused and
// restarted. Its methods must not be called at once.
type Server struct{ peer *peer.Server }

// Start starts a peer with empty data, which ends with the test. It skips the
// test if no peer can be had, or fails it if REQUIRE_STORES contains "mongo".
// MONGODB_URI doesn't matter here: a server that others use can't be killed.
func Start(t testing.TB) *Server {
	t.Helper()
	return &Server{kind.Start(t)}
}

// URI is where the peer listens. It stays the same when the peer is restarted.
func (s *Server) URI() string { return "mongodb://" + s.Addr() + "/" }

// Addr is the peer's host and port.
func (s *Server) Addr() string { return s.peer.Addr() }

// Kill ends the peer with SIGKILL and waits until it is gone. A peer that is
// paused or dead may be killed, too.
func (s *Server) Kill() { s.peer.Kill() }

// Restart starts the peer again on the same port and data; it kills it first if
// it runs.
func (s *Server) Restart() { s.peer.Restart() }

// Pause stops the peer (SIGSTOP): its connections stay open, but it doesn't answer. It
// skips the test on systems that can't.
func (s *Server) Pause() { s.peer.Pause() }

// Resume lets a paused peer go on (SIGCONT).
func (s *Server) Resume() { s.peer.Resume() }
