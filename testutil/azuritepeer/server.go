package azuritepeer

import (
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// The account of the server, and its key.
const (
	Account = "slotlease"
	Key     = "YSBrZXkgb2YgdGhlIHRlc3RzJyBvd24gYmxvYiBwZWVy"
)

// kind is how the server is run.
var kind = peer.Kind{
	Name: "azurite", Title: "Azurite",
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
		cmd.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+Account+":"+Key)
		return cmd, nil
	},
}

// Server is a separate server for one test: a process with the methods Addr, Kill, Restart, RestartEmpty, Pause and
// Resume. They must not be called at once.
type Server struct{ *peer.Server }

// Start starts a server without containers, which ends with the test. It skips the test if no server can be had, or
// fails it if REQUIRE_STORES contains "azurite".
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

// Endpoint is the URL of the server, without the account. It stays the same when the server is restarted.
func (s *Server) Endpoint() string { return "http://" + s.Addr() }

var shared = kind.Share()

// Shared is the URL of a server that all tests of this test binary share.
func Shared(t testing.TB) string {
	t.Helper()
	return (&Server{shared.Server(t)}).Endpoint()
}
