package redispeer

import (
	"strconv"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// Options says what server to start. The zero value is one that writes each change to its
// append-only file, and syncs it, before it answers.
type Options struct {
	// Flags are further flags of the server, such as "--appendonly", "no".
	Flags []string
	// Config is the path of a redis.conf that the server reads first, or empty.
	Config string
}

func (o Options) kind() peer.Kind {
	return peer.Kind{Name: "redis", Title: "Redis", Program: o.program}
}

func (o Options) program(port int, data string) (peer.Program, error) {
	path, err := peer.Find("redis-server", "/usr/bin")
	if err != nil {
		return peer.Program{}, err
	}
	serve := []string{path}
	if o.Config != "" {
		serve = append(serve, o.Config)
	}
	return peer.Program{
		Serve: append(append(serve,
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", data, "--save", "",
			"--appendonly", "yes", "--appendfsync", "always",
		), o.Flags...),
		Ready: "Ready to accept connections",
	}, nil
}

// Server is a separate server for one test: a process with the methods Addr, Kill, Restart,
// RestartEmpty, Pause and Resume. They must not be called at once.
type Server struct{ *peer.Server }

// Start starts a server with empty data, which ends with the test. It skips the test if no server
// can be had, or fails it if REQUIRE_STORES contains "redis".
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	return &Server{o.kind().Start(t)}
}

// StartIn is Start for a harness that isn't a test, with the data in a folder that is empty. The server
// ends with the process. Its methods are End, Again, Freeze and Thaw then, in place of Kill, Restart,
// Pause and Resume.
func StartIn(data string, o Options) (*Server, error) {
	s, err := o.kind().StartIn(data)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// URI is where the server listens, with the database 0. It stays the same when the server is
// restarted.
func (s *Server) URI() string { return "redis://" + s.Addr() + "/0" }

// sharedKind keeps its data in memory only.
var sharedKind = Options{Flags: []string{"--appendonly", "no"}}.kind()

var shared = sharedKind.Share()

// Shared is the URI of a server that all tests of this test binary share.
func Shared(t testing.TB) string {
	t.Helper()
	return (&Server{shared.Server(t)}).URI()
}
