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
			path, err := program()
			if err != nil {
				return nil, err
			}
			flags := []string{path, "--host=" + host, "--port=" + port, "--data=" + data}
			if temporary {
				flags = append(flags, "--remove")
			}
			cmd := exec.Command("node", flags...)
			cmd.Env = append(os.Environ(), clock...)
			return cmd, nil
		},
	}
	if clock != nil {
		k.Killed = removeShared
	}
	return k
}

// Server is a separate peer for one test: a process with the methods Addr, Kill,
// Restart, RestartEmpty, Pause and Resume. They must not be called at once.
type Server struct{ *peer.Server }

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

// StartIn is Start for a harness that isn't a test, with the data in a folder that is empty. The server
// ends with the process. Its methods are End, Again, Freeze and Thaw then, in place of Kill, Restart,
// Pause and Resume.
func StartIn(data string) (*Server, error) {
	s, err := kindWith(nil).StartIn(data)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// URI is where the peer listens, in the form that store/cosmos takes, without
// database and container. It stays the same when the peer is restarted.
func (s *Server) URI() string { return "cosmos://" + s.Addr() + "/?insecureHTTP=true" }
