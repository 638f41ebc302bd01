package mysqlpeer

import (
	"crypto/rand"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// Database makes a database on the shared server, and is its DSN for the superuser. It stays as long
// as the server.
func Database(t testing.TB) string {
	t.Helper()
	s := server(t)
	name := "t" + strings.ToLower(rand.Text())
	Exec(t, dsn(s, ""), "CREATE DATABASE "+name)
	return dsn(s, name)
}

// Role makes a user with a password and no rights but those that are named, such as "SELECT ON
// records" or "ALL ON t1.*". It is the DSN for that user.
func Role(t testing.TB, dsn string, rights ...string) string {
	t.Helper()
	name, password := "r"+strings.ToLower(rand.Text()), rand.Text()
	statements := []string{fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY '%s'", name, password)}
	for _, r := range rights {
		statements = append(statements, fmt.Sprintf("GRANT %s TO %s@'%%'", r, name))
	}
	Exec(t, dsn, statements...)
	return name + ":" + password + dsn[strings.IndexByte(dsn, '@'):]
}

// Exec runs statements of SQL, each in a transaction of its own, and is what they print. One that
// fails ends the test.
func Exec(t testing.TB, dsn string, statements ...string) string {
	t.Helper()
	cmd, err := client(dsn, statements...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", statements, err, out)
	}
	return strings.TrimSpace(string(out))
}

// parts are those of the DSNs above: user, password, address and database.
var parts = regexp.MustCompile(`^(\w+)(?::(\w*))?@tcp\(([^)]*)\)/(\w*)$`)

// client is the command that runs statements.
func client(dsn string, statements ...string) (*exec.Cmd, error) {
	p := parts.FindStringSubmatch(dsn)
	if p == nil {
		return nil, fmt.Errorf("%q isn't a DSN of this package", dsn)
	}
	host, port, err := net.SplitHostPort(p[3])
	if err != nil {
		return nil, err
	}
	path, err := peer.Find("mariadb", "/usr/bin")
	if err != nil {
		return nil, err
	}
	args := []string{
		"--no-defaults", "--protocol=tcp", "--host=" + host, "--port=" + port, "--user=" + p[1], "--password=" + p[2],
		"--connect-timeout=30", "--batch", "--skip-column-names", "--execute=" + strings.Join(statements, ";"),
	}
	if p[4] != "" {
		args = append(args, "--database="+p[4])
	}
	return exec.Command(path, args...), nil
}
