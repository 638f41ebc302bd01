//go:build unix

package late_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/sqlfence"
)

var rounds = flag.Int("rounds", 8, "how often a holder is stopped")

// The environment of a process that is a holder: the file of the ledger, and the databases, each as
// driver=source.
const envLedger, envDatabases = "LATE_LEDGER", "LATE_DATABASES"

const slot = 400 * time.Millisecond

func TestMain(m *testing.M) {
	if path := os.Getenv(envLedger); path != "" {
		if err := lead(path, strings.Split(os.Getenv(envDatabases), "\n")); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// target is a database that holders write to.
type target struct {
	*sql.DB
	dialect sqlfence.Dialect
	insert  string
}

func targetOf(named string) (target, error) {
	driver, source, _ := strings.Cut(named, "=")
	db, err := sql.Open(driver, source)
	t := target{db, sqlfence.PostgreSQL, pgInsert}
	if driver == "sqlite" {
		t.dialect, t.insert = sqlfence.SQLite, "INSERT INTO writes (token) VALUES (?)"
	}
	return t, err
}

// lead leases, and prints its token when it leads. It writes to all databases when its standard input says
// so, whether it still leads or not, and prints what came of each. "unfenced" does it without a fence.
func lead(path string, databases []string) error {
	ctx := context.Background()
	ledger, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return err
	}
	var targets []target
	for _, named := range databases {
		t, err := targetOf(named)
		if err != nil {
			return err
		}
		targets = append(targets, t)
	}
	orders := bufio.NewScanner(os.Stdin)
	w, err := workerlease.StartLeasing(ctx, ledger, workerlease.Options{WorkerType: "late", LeaseInterval: slot}, workerlease.Callbacks{
		LeaseAllocated: func(_ context.Context, l workerlease.Lease) {
			fmt.Println("leads", l.Token)
			if !orders.Scan() {
				return
			}
			for _, t := range targets {
				fmt.Println("wrote", outcome(ctx, t, l.Token, orders.Text()))
			}
		},
	})
	if err != nil {
		return err
	}
	<-w.Done()
	return nil
}

// outcome writes to a database, and says what came of it.
func outcome(ctx context.Context, t target, token int64, how string) string {
	write := func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, t.insert, token)
		return err
	}
	var err error
	if how == "unfenced" {
		_, err = t.ExecContext(ctx, t.insert, token)
	} else {
		err = sqlfence.Do(ctx, t.DB, t.dialect, "late", token, write)
	}
	var stale *fence.StaleError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &stale) && errors.Is(err, fence.ErrStale) && stale.Token == token:
		return "stale"
	default:
		return err.Error()
	}
}

// process is a holder, or will be.
type process struct {
	*exec.Cmd
	name  string
	stdin io.WriteCloser
	said  chan string
}

func spawn(t *testing.T, name, ledger string, databases []string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0]), name: name, said: make(chan string, 10)}
	p.Env = append(os.Environ(), envLedger+"="+ledger, envDatabases+"="+strings.Join(databases, "\n"))
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	p.stdin = in
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.said <- lines.Text()
		}
		close(p.said)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// hears waits for what a process says.
func (p *process) hears(t *testing.T, want string) string {
	t.Helper()
	select {
	case line := <-p.said:
		return p.is(t, line, want)
	case <-time.After(time.Minute):
		t.Fatalf("%s says nothing, want %q", p.name, want)
	}
	return ""
}

// is checks the first word of what a process said, and returns the rest.
func (p *process) is(t *testing.T, line, want string) string {
	t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	if word != want {
		t.Fatalf("%s says %q, want %q", p.name, line, want)
	}
	return rest
}

// writes lets a process write.
func (p *process) writes(t *testing.T, how string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.stdin, how); err != nil {
		t.Fatal(err)
	}
}

// Holders are stopped past the ends of their windows, the next ones write, and then they go on, and write.
func TestAHolderThatWasStoppedWritesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "leases.db")
	ledger, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close(context.WithoutCancel(t.Context())) })
	if err := ledger.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	databases := []string{
		"sqlite=file:" + filepath.Join(dir, "app.db") + "?_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)",
		"pgx=" + postgres(t),
	}
	targets := make([]target, len(databases))
	for i, named := range databases {
		if targets[i], err = targetOf(named); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = targets[i].Close() })
		table := pgWrites
		if targets[i].dialect == sqlfence.SQLite {
			table = "CREATE TABLE writes (id INTEGER PRIMARY KEY, token INTEGER)"
		}
		create(t, targets[i].DB, sqlfence.Schema(targets[i].dialect), table)
	}
	both := []*process{spawn(t, "a", path, databases), spawn(t, "b", path, databases)}
	refused := 0
	round := func(how string) {
		t.Helper()
		first, second := both[0], both[1]
		select {
		case line := <-first.said:
			first.is(t, line, "leads")
		case line := <-second.said:
			first, second = second, first
			first.is(t, line, "leads")
		case <-time.After(time.Minute):
			t.Fatal("nobody leads")
		}
		first.signal(t, syscall.SIGSTOP)
		second.hears(t, "leads")
		second.writes(t, "fenced")
		for range databases {
			if got := second.hears(t, "wrote"); got != "ok" {
				t.Fatalf("%s, which leads: %s", second.name, got)
			}
		}
		first.writes(t, how)
		first.signal(t, syscall.SIGCONT)
		for i := range databases {
			switch got := first.hears(t, "wrote"); {
			case how == "fenced" && got == "stale":
				refused++
			case how == "fenced":
				t.Errorf("a late write to %s: %s, want it to be refused as stale", databases[i], got)
			case got != "ok":
				t.Fatalf("a late write without a fence: %s", got)
			}
		}
	}
	for range *rounds {
		round("fenced")
	}
	for i, x := range targets {
		if got := tokens(t, x.DB); len(got) != *rounds || !slices.IsSorted(got) {
			t.Errorf("%d writes to %s, want %d in the order of their tokens: %v", len(got), databases[i], *rounds, got)
		}
	}
	t.Logf("%d rounds: %d late writes, and %d of them refused", *rounds, *rounds*len(databases), refused)

	// Without a fence the same shows: otherwise this test would show nothing.
	round("unfenced")
	for i, x := range targets {
		if got := tokens(t, x.DB); slices.IsSorted(got) {
			t.Errorf("a late write without a fence to %s isn't noticed: %v", databases[i], got)
		}
	}
}
