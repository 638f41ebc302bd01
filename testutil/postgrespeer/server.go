package postgrespeer

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// folders are where Debian keeps the programs of each version.
const folders = "/usr/lib/postgresql/*/bin"

// Options says what server to start. The zero value is one with PostgreSQL's own settings.
type Options struct {
	// Settings are further lines of postgresql.conf, such as "max_connections=5".
	Settings []string
	// Files are put into the folder of the databases before the server is first started: their texts, by name. Nobody but the server
	// may read them, as it demands of keys.
	Files map[string]string
	// Access are lines of pg_hba.conf, before those that let in the superuser without a password and others with one.
	Access []string
	// Follows is the server of which this one is a standby, or nil. It begins with a copy of its data.
	Follows *Server
}

func (o Options) kind() peer.Kind {
	return peer.Kind{
		Name: "postgres", Title: "PostgreSQL",
		Program: o.program,
		Killed:  removeSegment,
	}
}

// program is how the server is run. A password is asked of everybody but the superuser.
func (o Options) program(port int, data string) (peer.Program, error) {
	var paths []string
	for _, name := range []string{"initdb", "postgres", "psql", "pg_basebackup"} {
		path, err := peer.Find(name, folders)
		if err != nil {
			return peer.Program{}, err
		}
		paths = append(paths, path)
	}
	at := filepath.Join(data, "db")
	serve := []string{paths[1], "-D", at, "-p", strconv.Itoa(port)}
	for _, s := range append([]string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=",
		"dynamic_shared_memory_type=mmap", // in its folder, not in /dev/shm, where a killed server would leave it
	}, o.Settings...) {
		serve = append(serve, "-c", s)
	}
	if o.Follows != nil {
		return peer.Program{
			Prepare:      [][]string{{paths[3], "-D", at, "-d", o.Follows.URI(), "-R", "--checkpoint=fast", "--no-sync"}},
			Serve:        serve,
			Ready:        "database system is ready to accept read-only connections",
			Unprivileged: true,
			Stop:         syscall.SIGQUIT,
		}, nil
	}
	prepare := [][]string{{paths[0], "-D", at, "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"}}
	write := func(name, text string) {
		prepare = append(prepare, []string{"sh", "-c", `umask 077; printf %s "$1" >"$2"`, "sh", text, filepath.Join(at, name)})
	}
	const access = "host all,replication postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	write("pg_hba.conf", strings.Join(append(o.Access, access), "\n"))
	for name, text := range o.Files {
		write(name, text)
	}
	return peer.Program{
		Prepare:      prepare,
		Serve:        serve,
		Ready:        "database system is ready to accept connections",
		Unprivileged: true,
		Stop:         syscall.SIGQUIT, // at once, but without what removeSegment is for
	}, nil
}

// removeSegment removes the segment of System V shared memory by which a running server shows that
// it uses its data. Its id is in the seventh line of postmaster.pid.
func removeSegment(_ int, data string) {
	b, err := os.ReadFile(filepath.Join(data, "db", "postmaster.pid"))
	if err != nil {
		return
	}
	if lines := strings.Split(string(b), "\n"); len(lines) > 6 {
		if fields := strings.Fields(lines[6]); len(fields) == 2 {
			if id, err := strconv.Atoi(fields[1]); err == nil {
				removeShared(id)
			}
		}
	}
}

// Server is a separate server for one test: processes with the methods Addr, Kill, Restart,
// RestartEmpty, Pause and Resume. They must not be called at once.
type Server struct{ *peer.Server }

// Start starts a server with empty data, which ends with the test. It syncs what it commits, unless
// o.Settings say otherwise. It skips the test if no server can be had, or fails it if REQUIRE_STORES
// contains "postgres".
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

// URI is where the superuser reaches the database postgres. It stays the same when the server is
// restarted.
func (s *Server) URI() string { return uri(s.Server, "postgres") }

func uri(s *peer.Server, database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", s.Addr(), database)
}

// sharedKind loses data only with the machine, which loses the tests, too.
var sharedKind = Options{Settings: []string{"fsync=off", "max_connections=300"}}.kind()

var shared = sharedKind.Share()

// server is the shared one.
func server(t testing.TB) *peer.Server {
	t.Helper()
	return shared.Server(t)
}

// Shared is the URI of the database postgres, for its superuser, on a server that all tests of this
// test binary share.
func Shared(t testing.TB) string {
	t.Helper()
	return uri(server(t), "postgres")
}
