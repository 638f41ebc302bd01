package postgrespeer

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) { peertest.Main(m, shared) }

// ask runs a statement, and is the error of psql.
func ask(ctx context.Context, uri, statement string) error {
	psql, err := peer.Find("psql", folders)
	if err != nil {
		return err
	}
	return exec.CommandContext(ctx, psql, "-XAtq", "-d", uri, "-c", statement).Run()
}

func TestARestartedServerKeepsItsPortAndData(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Settings: []string{"max_connections=7"}})
	if got := Exec(t, s.URI(), "SHOW fsync", "SHOW max_connections"); got != "on\n7" {
		t.Errorf("fsync and max_connections are %q, want on and what Options says", got)
	}
	Exec(t, s.URI(), "CREATE TABLE a (b int)", "INSERT INTO a VALUES (3)")
	peertest.RestartsAtItsAddress(t, s.Server)
	if got := Exec(t, s.URI(), "SELECT b FROM a"); got != "3" {
		t.Errorf("after the restart there is %q, want 3", got)
	}
	s.RestartEmpty()
	if ask(t.Context(), s.URI(), "SELECT b FROM a") == nil {
		t.Error("after RestartEmpty the table is there, want all data lost")
	}
}

func TestAPausedServerIsSilentUntilResumed(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	peertest.IsSilentWhilePaused(t, s.Server, func(ctx context.Context) error { return ask(ctx, s.URI(), "SELECT 1") })
}

// A connection has a process, with a session of its own.
func TestAPausedServerStopsWhatItsConnectionsDo(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	peertest.StopsProgressWhilePaused(t, s.Server, func(ctx context.Context) error {
		return ask(ctx, s.URI(), "SELECT pg_sleep(1)")
	})
}

func TestAllTestsShareAServer(t *testing.T) {
	t.Parallel()
	uri := peertest.IsShared(t, Shared)
	if got := Exec(t, uri, "SELECT 1"); got != "1" {
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
	uri := Database(t)
	Exec(t, uri, "CREATE TABLE a (b int)")
	role := Role(t, uri, "SELECT ON a")
	for _, c := range []struct {
		name, uri, statement string
		allowed              bool
	}{
		{"a right it has", role, "SELECT b FROM a", true},
		{"a right it hasn't", role, "INSERT INTO a VALUES (1)", false},
		{"a wrong password", strings.Replace(role, "@", "x@", 1), "SELECT b FROM a", false},
	} {
		if err := ask(t.Context(), c.uri, c.statement); (err == nil) != c.allowed {
			t.Errorf("%s: %v, want allowed %v", c.name, err, c.allowed)
		}
	}
}

func TestTheServerEndsWithItsTestBinary(t *testing.T) {
	t.Parallel()
	peertest.EndsWithItsTestBinary(t, shared)
}

func TestAStandbyFollowsAndMayTakeOver(t *testing.T) {
	t.Parallel()
	primary := Start(t, Options{})
	standby := Start(t, Options{Follows: primary})
	Exec(t, primary.URI(), "CREATE TABLE a (b int)", "INSERT INTO a VALUES (3)")
	if got := Exec(t, standby.URI(), "SELECT pg_is_in_recovery()"); got != "t" {
		t.Errorf("is the standby one? %q, want t", got)
	}
	for tries := 0; ask(t.Context(), standby.URI(), "SELECT 1 / count(*) FROM a WHERE b = 3") != nil; tries++ {
		if tries == 1000 {
			t.Fatal("the standby still lacks the row after 10 s")
		}
		Exec(t, standby.URI(), "SELECT pg_sleep(0.01)") // A standby follows some moments later.
	}
	primary.Kill()
	Exec(t, standby.URI(), "SELECT pg_promote()", "SET synchronous_commit = local; INSERT INTO a VALUES (5)")
}

func TestAPoolerPassesStatementsOn(t *testing.T) {
	t.Parallel()
	uri := Database(t)
	Exec(t, uri, "CREATE TABLE a (b int)", "INSERT INTO a VALUES (3)")
	for _, mode := range []string{"session", "transaction", "statement"} {
		pooled := Pooler(t, uri, mode)
		if got := Exec(t, pooled, "SELECT b FROM a"); got != "3" {
			t.Errorf("in %s mode the row is %q, want 3", mode, got)
		}
		if err := ask(t.Context(), pooled, "BEGIN"); (err != nil) != (mode == "statement") {
			t.Errorf("in %s mode BEGIN = %v, want an error in statement mode alone", mode, err)
		}
	}
}
