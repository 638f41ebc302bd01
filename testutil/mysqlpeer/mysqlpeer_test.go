package mysqlpeer

import (
	"context"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) { peertest.Main(m, shared) }

// ask runs a statement, and is the error of the client.
func ask(ctx context.Context, dsn, statement string) error {
	cmd, err := client(dsn, statement)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	return cmd.Wait()
}

func TestARestartedServerKeepsItsPortAndData(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Flags: []string{"--max-connections=17"}})
	if got := Exec(t, s.DSN(), "SELECT @@innodb_flush_log_at_trx_commit, @@max_connections"); got != "1\t17" {
		t.Errorf("innodb_flush_log_at_trx_commit and max_connections are %q, want 1 and what Options says", got)
	}
	Exec(t, s.DSN(), "CREATE DATABASE d", "CREATE TABLE d.a (b int)", "INSERT INTO d.a VALUES (3)")
	peertest.RestartsAtItsAddress(t, s.Server)
	if got := Exec(t, s.DSN(), "SELECT b FROM d.a"); got != "3" {
		t.Errorf("after the restart there is %q, want 3", got)
	}
	s.RestartEmpty()
	if ask(t.Context(), s.DSN(), "SELECT b FROM d.a") == nil {
		t.Error("after RestartEmpty the table is there, want all data lost")
	}
}

func TestAPausedServerIsSilentUntilResumed(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	peertest.IsSilentWhilePaused(t, s.Server, func(ctx context.Context) error { return ask(ctx, s.DSN(), "SELECT 1") })
	peertest.StopsProgressWhilePaused(t, s.Server, func(ctx context.Context) error { return ask(ctx, s.DSN(), "SELECT sleep(1)") })
}

func TestAllTestsShareAServer(t *testing.T) {
	t.Parallel()
	dsn := peertest.IsShared(t, Shared)
	if got := Exec(t, dsn, "SELECT 1"); got != "1" {
		t.Errorf("SELECT 1 = %q, want 1", got)
	}
	a, b := Database(t), Database(t)
	Exec(t, a, "CREATE TABLE a (b int)")
	if ask(t.Context(), b, "SELECT b FROM a") == nil {
		t.Error("another database has the table, want each fresh")
	}
}

func TestARoleHasItsPasswordAndItsRights(t *testing.T) {
	t.Parallel()
	dsn := Database(t)
	Exec(t, dsn, "CREATE TABLE a (b int)")
	role := Role(t, dsn, "SELECT ON a")
	for _, c := range []struct {
		name, dsn, statement string
		allowed              bool
	}{
		{"a right it has", role, "SELECT b FROM a", true},
		{"a right it hasn't", role, "INSERT INTO a VALUES (1)", false},
		{"a wrong password", strings.Replace(role, "@", "x@", 1), "SELECT b FROM a", false},
	} {
		if err := ask(t.Context(), c.dsn, c.statement); (err == nil) != c.allowed {
			t.Errorf("%s: %v, want allowed %v", c.name, err, c.allowed)
		}
	}
}

func TestTheServerEndsWithItsTestBinary(t *testing.T) {
	t.Parallel()
	peertest.EndsWithItsTestBinary(t, shared)
}
