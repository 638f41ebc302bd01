package natspeer

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// program is the path of the server's program. It is found once in each test binary.
var program = sync.OnceValues(peer.Module{Name: "natspeer", Title: "NATS peer"}.Build)

// kind is how a server is run, with settings in its own language.
func kind(settings string) peer.Kind {
	return peer.Kind{Name: "nats", Title: "NATS", Command: func(addr, data string, temporary bool) (*exec.Cmd, error) {
		path, err := program()
		if err != nil {
			return nil, err
		}
		flags := []string{"-addr", addr, "-data", data}
		if settings != "" {
			config := filepath.Join(data, "server.conf")
			if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
				return nil, err
			}
			flags = append(flags, "-config", config)
		}
		if temporary {
			flags = append(flags, "-remove")
		}
		return exec.Command(path, flags...), nil
	}}
}

// Server is a separate server for one test: a process with the methods Addr, Kill, Restart, RestartEmpty, Pause and
// Resume. They must not be called at once.
type Server struct{ *peer.Server }

// Start starts a server without buckets, which ends with the test. settings, which may be empty, are lines of a server's
// configuration file. It skips the test if no server can be had, or fails it if REQUIRE_STORES contains "nats".
func Start(t testing.TB, settings string) *Server {
	t.Helper()
	return &Server{kind(settings).Start(t)}
}

// StartIn is Start for a harness that isn't a test, with the data in a folder that is empty. The server
// ends with the process. Its methods are End, Again, Freeze and Thaw then, in place of Kill, Restart,
// Pause and Resume.
func StartIn(data string) (*Server, error) {
	s, err := kind("").StartIn(data)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// URI is that of the server, with a slash at its end. It stays the same when the server is restarted.
func (s *Server) URI() string { return "nats://" + s.Addr() + "/" }

var shared = kind("").Share()

// Shared is the URI of a server that all tests of this test binary share.
func Shared(t testing.TB) string {
	t.Helper()
	return (&Server{shared.Server(t)}).URI()
}

// Cluster starts three servers of one cluster, which end with the test, and returns them and the URI of all.
func Cluster(t *testing.T) (servers []*Server, uri string) {
	t.Helper()
	_ = Shared(t) // or skip
	var routes, addrs []string
	var listeners []net.Listener
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		routes = append(routes, l.Addr().String())
		listeners = append(listeners, l)
	}
	for _, l := range listeners { // All at once, so that no two are the same.
		_ = l.Close()
	}
	for i, route := range routes {
		servers = append(servers, Start(t, fmt.Sprintf("server_name: s%d\ncluster { name: c, listen: %q, routes: [nats://%s] }\n",
			i, route, strings.Join(routes, ", nats://"))))
		addrs = append(addrs, servers[i].Addr())
	}
	return servers, "nats://" + strings.Join(addrs, ",") + "/"
}
