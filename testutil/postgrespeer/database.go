package postgrespeer

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// Database makes a database on the shared server, and is its URI for the superuser. It stays as long
// as the server.
func Database(t testing.TB) string {
	t.Helper()
	s := server(t)
	name := "t" + strings.ToLower(rand.Text())
	Exec(t, uri(s, "postgres"), "CREATE DATABASE "+name)
	return uri(s, name)
}

var granting sync.Mutex

// Role makes a role with a password and no rights in a database but those that are named, such as
// "SELECT ON records" or "CREATE ON SCHEMA public". It is the URI for that role.
func Role(t testing.TB, uri string, rights ...string) string {
	t.Helper()
	name, password := "r"+strings.ToLower(rand.Text()), rand.Text()
	statements := []string{fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, password)}
	for _, r := range rights {
		statements = append(statements, fmt.Sprintf("GRANT %s TO %s", r, name))
	}
	// Two statements that grant rights to one table at once fail: "tuple concurrently updated".
	granting.Lock()
	defer granting.Unlock()
	Exec(t, uri, statements...)
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, password)
	return u.String()
}

// Exec runs statements of SQL, each in a transaction of its own, and is what they print. One that
// fails ends the test.
func Exec(t testing.TB, uri string, statements ...string) string {
	t.Helper()
	psql, err := peer.Find("psql", folders)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-XAtq", "-v", "ON_ERROR_STOP=1", "-d", uri}
	for _, s := range statements {
		args = append(args, "-c", s)
	}
	cmd := exec.Command(psql, args...)
	cmd.Env = append(os.Environ(), "PGCONNECT_TIMEOUT=30")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", statements, err, out)
	}
	return strings.TrimSpace(string(out))
}
