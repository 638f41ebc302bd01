//go:build unix

package late_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

// postgres starts a server that ends with the test, and returns how to connect to it: by a socket in a
// folder of its own. It needs Debian's postgresql, or initdb and postgres in PATH.
func postgres(t *testing.T) (source string) {
	t.Helper()
	bin := filepath.Dir(program(t, "postgres"))
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // The path of a socket must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as := unprivileged(t, dir)
	data := filepath.Join(dir, "data")
	run := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "test", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
	run.SysProcAttr, run.Dir = as, dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	var log bytes.Buffer
	server.SysProcAttr, server.Dir, server.Stdout, server.Stderr = as, dir, &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = server.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT) // Fast: it ends its sessions.
		<-ended
		if t.Failed() {
			t.Logf("postgres: %s", log.String())
		}
	})
	source = "host=" + dir + " user=test dbname=postgres"
	db := connect(t, source)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := db.PingContext(t.Context())
		if err == nil {
			return source
		}
		select {
		case <-ended:
			t.Fatalf("postgres has ended: %s", log.String())
		default:
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("no answer of postgres: %v", err)
		}
	}
}

// program finds a server's program. Without it the test is skipped, unless it is required.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		if slices.Contains(strings.Split(os.Getenv("REQUIRE_STORES"), ","), "postgres") {
			t.Fatalf("%s is required, and not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	return slices.Max(found)
}

// unprivileged is how a server runs in a folder: it refuses to as root.
func unprivileged(t *testing.T, dir string) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func connect(t *testing.T, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// waiting waits until a session of the server waits for a lock.
func waiting(t *testing.T, db *sql.DB) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		n := 0
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatal("nobody waits for a lock")
		}
	}
}

// tokens are those of all writes, in the order in which they were made.
func tokens(t *testing.T, db *sql.DB) (found []int64) {
	t.Helper()
	rows, err := db.QueryContext(context.WithoutCancel(t.Context()), "SELECT token FROM writes ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var token int64
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		found = append(found, token)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

// create makes the table of writes, and that of fences.
func create(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", s, err))
		}
	}
}
