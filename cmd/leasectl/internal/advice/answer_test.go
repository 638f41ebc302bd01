package advice

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/store/storekit"
)

// advised is an error of a store that says what to do.
type advised struct{ error }

func (e advised) Unwrap() error  { return e.error }
func (e advised) Remedy() string { return "create the database" }

func TestWhatToTryDependsOnTheAnswer(t *testing.T) {
	const unreached = "check that the server runs, "
	for _, c := range []struct {
		name, uri, env string
		err            error
		code           int
		want           string // how the hint begins; none if empty
	}{
		{"a server answered what the store can't use", "mongodb://h/d", "", errors.New("server at h:27017 reports wire version 5"), exit.Unreachable, ""},
		{"the server said no", "postgres://h/d", "", &pgconn.PgError{Code: "55P03"}, exit.Unreachable, ""},
		{"the server throttles", "mongodb+srv://h.invalid/d", "", &store.ThrottledError{Err: errors.New("no")}, exit.Unreachable, "again in a moment; if it lasts, the server has too much"},
		{"a container is missing", "cosmos://acct", cosmos.KeyVariable + "=a2V5", store.ErrMissing, exit.Missing, "leasectl init --store cosmos://acct"},
		{"a container is missing at an endpoint", "cosmos:///", cosmos.ConnectionVariable + "=AccountEndpoint=https://h.invalid:443/;AccountKey=a2V5;", store.ErrMissing, exit.Missing, "leasectl init --store cosmos:///"},
		{"the store says what helps", "mongodb://h/d", "", advised{errors.New("no primary")}, exit.Unreachable, "create the database"},
		{"the database is missing", "postgres://h/d", "", advised{store.ErrMissing}, exit.Missing, "create the database"},
		{"a table is missing", "postgres://h/d", "", store.ErrMissing, exit.Missing, "leasectl init --store postgres://h/d"},
		{"nobody answered", "mysql://h/d", "", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, exit.Unreachable, unreached},
		{"the other end hangs up", "postgres://h/d", "", io.ErrUnexpectedEOF, exit.Unreachable, unreached},
		{"the other end hangs up at once", "redis://h/0", "", io.EOF, exit.Unreachable, unreached},
		{"the other end is no MySQL", "mysql://h/d", "", mysql.ErrInvalidConn, exit.Unreachable, unreached},
		{"the other end speaks no TLS", "rediss://h/0", "", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, exit.Unreachable, unreached},
		{"nobody answered in time", "cosmos://acct", "", context.DeadlineExceeded, exit.Unreachable, unreached},
		{"the server takes no writes", "mysql://h/d", "", storekit.ConnectError{Tried: []error{storekit.Unfit{Why: "read_only is ON"}}}, exit.Unreachable, ""},
		{"a file is locked", "sqlite:x.db", "", errors.New("database is locked"), exit.Unreachable, ""},
		{"a file is slow", "sqlite:x.db", "", context.DeadlineExceeded, exit.Unreachable, ""},
	} {
		set, value, _ := strings.Cut(c.env, "=")
		target, err := storeuri.Parse(c.uri, func(name string) string { return map[string]string{set: value}[name] })
		if err != nil {
			t.Fatal(err)
		}
		f, ok := errors.AsType[*exit.Error](ForStore(target, fmt.Errorf("now: %w", c.err)))
		if !ok || f.Code != c.code || !strings.HasPrefix(f.Try, c.want) || (c.want == "") != (f.Try == "") {
			t.Errorf("%s, %s: %+v, want code %d, and to try %q", c.uri, c.name, f, c.code, c.want)
		}
	}
}

func TestHintsCanBePastedIntoAShell(t *testing.T) {
	for text, want := range map[string]string{
		"sqlite:leases.db":                     " --store sqlite:leases.db",
		"cosmos://a/d/c?throughput=400&x=it's": ` --store 'cosmos://a/d/c?throughput=400&x=it'\''s'`,
		"mongodb://h/d?collection=leases":      " --store 'mongodb://h/d?collection=leases'",
		"sqlite:password=***":                  " --store 'sqlite:password=***'",
		"sqlite:$(touch x) `touch x`; --yes":   " --store 'sqlite:$(touch x) `touch x`; --yes'",
		"sqlite:a\nb\x1b[2J":                   ` --store "$(printf 'sqlite:a\012b\033\1332J')"`,
		"sqlite:a\n":                           "",
	} {
		for _, scheme := range []string{storeuri.SQLite, "mongodb"} {
			if scheme == "mongodb" && strings.Contains(text, "***") {
				continue
			}
			e, ok := errors.AsType[*exit.Error](ForStore(storeuri.Target{Scheme: scheme, Shown: text}, store.ErrMissing))
			if !ok || e.Try != "leasectl init"+want {
				t.Errorf("the hint for %q is %+v, want to try leasectl init%s", text, e, want)
			}
		}
	}
}

// What is shown of such a store opens nothing.
func TestAHintForAStoreWithASecretNamesTheVariable(t *testing.T) {
	const command = "leasectl override --worker-type t --seq 2"
	for _, inEnv := range []bool{false, true} {
		target, err := storeuri.Parse("mongodb://user:secret@h/d", func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		want := "with the store in LEASECTL_STORE: " + command
		if target.InEnv = inEnv; inEnv {
			want = command
		}
		if got := Command(target, command); got != want {
			t.Errorf("Command() = %q, want %q", got, want)
		}
	}
}
