package postgrespeer

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// Pooler starts a PgBouncer before a server, with a pool_mode (session, transaction or statement), and is the URI of
// the same database through it. Everybody is the superuser there. It ends with the test. Without the program, the
// test is skipped, or fails if REQUIRE_STORES contains "postgres".
func Pooler(t testing.TB, uri, mode string) string {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	s := peer.Kind{
		Name: "postgres", Title: "PgBouncer",
		Program: func(own int, data string) (peer.Program, error) {
			program, err := peer.Find("pgbouncer", "/usr/sbin")
			if err != nil {
				return peer.Program{}, err
			}
			settings := fmt.Sprintf("[databases]\n* = host=%s port=%s user=postgres\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%d\nunix_socket_dir=\n"+
				"auth_type=any\npool_mode=%s\ndefault_pool_size=4\nmax_client_conn=500\n", host, port, own, mode)
			file := filepath.Join(data, "pgbouncer.ini")
			return peer.Program{
				Prepare:      [][]string{{"sh", "-c", `printf %s "$1" >"$2"`, "sh", settings, file}},
				Serve:        []string{program, file},
				Ready:        "process up",
				Unprivileged: true,
			}, nil
		},
	}.Start(t)
	u.Host = s.Addr()
	return u.String()
}
