package cosmospeer

import (
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// Options says what peer to start. The zero value is one whose clock is right.
type Options struct {
	// ClockOffset is how far the peer's clock is ahead of this machine's; negative
	// if it is late. It is rounded to ms. It needs the program faketime, from the
	// Debian package of that name; without it, no such peer can be had.
	ClockOffset time.Duration
}

// kindWith is how a peer is run with an addition to its environment that shifts
// its clock, or none.
func kindWith(clock []string) peer.Kind {
	k := peer.Kind{
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
			cmd, err := Command(flags...)
			if err != nil {
				return nil, err
			}
			cmd.Env = append(os.Environ(), clock...)
			return cmd, nil
		},
	}
	if clock != nil {
		k.Killed = removeShared
	}
	return k
}

// Server is a separate peer for one test: a process that can be killed, paused and
// restarted. Its methods must not be called at once.
type Server struct{ peer *peer.Server }

// Start starts a peer with empty data, which ends with the test. It skips the
// test if no peer can be had, or fails it if REQUIRE_STORES contains "cosmos".
// COSMOS_URI doesn't matter here: an account that others use can't be killed.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	clock, err := shifted(o.ClockOffset)
	if err != nil {
		kindWith(nil).Unavailable(t, err)
	}
	return &Server{kindWith(clock).Start(t)}
}

// URI is where the peer listens, in the form that store/cosmos takes, without
// database and container. It stays the same when the peer is restarted.
func (s *Server) URI() string { return uriOf(s.peer) }

func uriOf(s *peer.Server) string { return "cosmos://" + s.Addr() + "/?insecureHTTP=true" }

// Addr is the peer's host and port.
func (s *Server) Addr() string { return s.peer.Addr() }

// Kill ends the peer with SIGKILL and waits until it is gone. A peer that is
// paused or dead may be killed, too.
func (s *Server) Kill() { s.peer.Kill() }

// Restart starts the peer again on the same port and data; it kills it first if
// it runs.
func (s *Server) Restart() { s.peer.Restart() }

// RestartEmpty is Restart with everything lost: databases, containers and items.
func (s *Server) RestartEmpty() { s.peer.RestartEmpty() }

// Pause stops the peer (SIGSTOP): its connections stay open, but it doesn't answer. It
// skips the test on systems that can't.
func (s *Server) Pause() { s.peer.Pause() }

// Resume lets a paused peer go on (SIGCONT).
func (s *Server) Resume() { s.peer.Resume() }
