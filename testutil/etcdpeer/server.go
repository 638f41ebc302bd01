package etcdpeer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// Options says what server to start. The zero value is one with etcd's own settings.
type Options struct {
	// Flags are further flags of the server, such as "--quota-backend-bytes=16777216".
	Flags []string
	// Cert and Key are files with the server's certificate and its key, in PEM. Its clients use TLS then.
	Cert, Key string
}

// scheme is that of the server's URLs, with the colon.
func (o Options) scheme() string {
	if o.Cert != "" {
		return "https:"
	}
	return "http:"
}

func (o Options) kind() peer.Kind {
	return peer.Kind{Name: "etcd", Title: "etcd", Program: o.program}
}

func (o Options) program(port int, data string) (peer.Program, error) {
	path, err := peer.Find("etcd", "/usr/bin")
	if err != nil {
		return peer.Program{}, err
	}
	uri := o.scheme() + "//" + peer.Local(port)
	ready := "serving client traffic insecurely"
	if o.Cert != "" {
		ready = "serving client traffic securely"
		o.Flags = append([]string{"--cert-file", o.Cert, "--key-file", o.Key}, o.Flags...)
	}
	return peer.Program{
		Serve: append([]string{
			path, "--data-dir", filepath.Join(data, "db"), "--logger=zap",
			"--listen-client-urls", uri, "--advertise-client-urls", uri,
			"--listen-peer-urls", "http://" + peer.Local(0), // which nobody needs
		}, o.Flags...),
		Ready: ready,
	}, nil
}

// Server is a separate server for one test, a cluster of one: a process with the methods Addr, Kill,
// Restart, RestartEmpty, Pause and Resume. They must not be called at once.
type Server struct {
	*peer.Server
	scheme string
}

// Start starts a server with empty data, which ends with the test. It skips the test if no server
// can be had, or fails it if REQUIRE_STORES contains "etcd".
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	return &Server{o.kind().Start(t), "etcd" + strings.TrimPrefix(o.scheme(), "http")}
}

// StartIn is Start for a harness that isn't a test, with the data in a folder that is empty. The server
// ends with the process. Its methods are End, Again, Freeze and Thaw then, in place of Kill, Restart,
// Pause and Resume.
func StartIn(data string, o Options) (*Server, error) {
	s, err := o.kind().StartIn(data)
	if err != nil {
		return nil, err
	}
	return &Server{s, "etcd" + strings.TrimPrefix(o.scheme(), "http")}, nil
}

// URI is where the server listens, with the scheme etcd, or etcds with TLS. It stays the same when the
// server is restarted.
func (s *Server) URI() string { return s.scheme + "//" + s.Addr() + "/" }

var sharedKind = Options{}.kind()

var shared = sharedKind.Share()

// Shared is the URI of a server that all tests of this test binary share.
func Shared(t testing.TB) string {
	t.Helper()
	return (&Server{shared.Server(t), "etcd:"}).URI()
}
