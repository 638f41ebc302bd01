package mysqlpeer

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// Options says what server to start. The zero value is one with MariaDB's own settings.
type Options struct {
	// Flags are further flags of the server, such as "--max-connections=5".
	Flags []string
	// Files are put into the folder of the databases before the server is first started: their texts, by name.
	Files map[string]string
}

func (o Options) kind() peer.Kind {
	return peer.Kind{Name: "mariadb", Title: "MariaDB", Program: o.program}
}

func (o Options) program(port int, data string) (peer.Program, error) {
	var paths []string
	for _, name := range []string{"mariadb-install-db", "mariadbd", "mariadb"} {
		path, err := peer.Find(name, "/usr/bin", "/usr/sbin")
		if err != nil {
			return peer.Program{}, err
		}
		paths = append(paths, path)
	}
	at := filepath.Join(data, "db")
	// A server that starts removes the temporary tables of others from a folder that they share.
	tmp := "--tmpdir=" + data
	prepare := [][]string{{paths[0], "--no-defaults", "--datadir=" + at, tmp, "--auth-root-authentication-method=normal", "--skip-test-db"}}
	for name, text := range o.Files {
		prepare = append(prepare, []string{"/bin/sh", "-c", `printf %s "$1" > "$2"`, "sh", text, filepath.Join(at, name)})
	}
	return peer.Program{
		Prepare: prepare,
		Serve: append([]string{
			paths[1], "--no-defaults", "--datadir=" + at, tmp, fmt.Sprintf("--port=%d", port), "--bind-address=127.0.0.1",
			"--socket=" + filepath.Join(data, "s"), "--pid-file=" + filepath.Join(data, "pid"),
		}, o.Flags...),
		Ready:        "ready for connections",
		Unprivileged: true,
	}, nil
}

// Server is a separate server for one test: a process with the methods Addr, Kill, Restart,
// RestartEmpty, Pause and Resume. They must not be called at once.
type Server struct{ *peer.Server }

// Start starts a server with empty data, which ends with the test. It syncs what it commits, unless
// o.Flags say otherwise. It skips the test if no server can be had, or fails it if REQUIRE_STORES
// contains "mariadb".
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	return &Server{o.kind().Start(t)}
}

// StartIn is Start for a harness that isn't a test, with the data in a folder that is empty, and which the
// user nobody must reach if root runs the harness. The server
// ends with the process. Its methods are End, Again, Freeze and Thaw then, in place of Kill, Restart,
// Pause and Resume.
func StartIn(data string, o Options) (*Server, error) {
	s, err := o.kind().StartIn(data)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// DSN is where the superuser reaches the server, in the form of github.com/go-sql-driver/mysql,
// without a database. It stays the same when the server is restarted.
func (s *Server) DSN() string { return dsn(s.Server, "") }

func dsn(s *peer.Server, database string) string {
	return fmt.Sprintf("root@tcp(%s)/%s", s.Addr(), database)
}

// sharedKind loses data only with the machine, which loses the tests, too.
var sharedKind = Options{Flags: []string{"--innodb-flush-log-at-trx-commit=0", "--max-connections=300"}}.kind()

var shared = sharedKind.Share()

// server is the shared one.
func server(t testing.TB) *peer.Server {
	t.Helper()
	return shared.Server(t)
}

// Shared is the DSN of a server, without a database, for its superuser. All tests of this test
// binary share the server.
func Shared(t testing.TB) string {
	t.Helper()
	return dsn(server(t), "")
}
