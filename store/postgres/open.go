package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Where ledgers are kept, unless Options or the URI say otherwise.
const (
	DefaultSchema = "public"
	// DefaultTable keeps the records. The roster is beside it, in worker_leases_roster.
	DefaultTable = "worker_leases"
	// rosterSuffix makes the name of the roster's table.
	rosterSuffix = "_roster"
)

const (
	defaultConns          = 4
	defaultConnectTimeout = 3 * time.Second
	// defaultSkew is how far the clocks of several servers are assumed to be apart.
	defaultSkew = 100 * time.Millisecond
)

// Options of Open. URI is required.
type Options struct {
	// URI names servers, database and table:
	//
	//	postgres://USER:PASSWORD@HOST:PORT/DATABASE?table=NAME
	//	postgres://USER@HOST1,HOST2:5433/DATABASE?sslrootcert=/etc/ca.pem
	//	postgres:///DATABASE?host=/var/run/postgresql
	//
	// Of several hosts the primary is used, in whatever order. Parameters: schema, table, serverSkew=500ms and
	// maxConns=4 are the fields of the same names; sslmode, sslrootcert, sslcert, sslkey, channel_binding,
	// connect_timeout (in seconds for each host, 3 by default, at most 60) and application_name are libpq's.
	//
	// sslmode is verify-full by default, and disable if all hosts are on the loopback interface or Unix sockets.
	//
	// Where the URI has none, user, password, certificates and keys come from PGUSER, PGPASSWORD, PGPASSFILE,
	// PGSSLROOTCERT, PGSSLCERT, PGSSLKEY and the files that libpq reads.
	URI string
	// Password of the URI's user. Default: that of the URI, else of the environment or the password file.
	Password string

	// Schema default: that of the URI, else DefaultSchema. It isn't searched for, since users may have
	// different search paths.
	Schema string
	// Table default: that of the URI, else DefaultTable. At most 56 bytes, of A-Z a-z 0-9 _.
	Table string

	// ServerSkew is how far the clocks of the primary and of those that may replace it are assumed to be apart. It
	// is part of each stamp. Default: that of the URI, else 0, or 100 ms as soon as there is another server: the
	// URI has several hosts, or standbys are connected. It can't be negative; at most 1 h.
	ServerSkew time.Duration

	// MaxConns bounds the connections to the server, but for one more of each Watch. Default: that of the URI, else
	// 4. From 1 to 1000.
	MaxConns int
	// AppName is what the server's pg_stat_activity shows. Default: that of the URI, else slotlease.
	AppName string
	// ReadOnly is for people who look: reads don't wait for the synchronous standbys, so that they work while none
	// answers. No lease may be decided by what they show. Append, Trim, Init and the like fail with store.ErrDenied.
	ReadOnly bool

	// Clock times the checks of the server. It doesn't measure leases. Default: the real clock.
	Clock clock.Clock
}

func init() {
	for _, name := range form.Schemes {
		store.Register(name, store.Driver{
			Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
				options := Options{URI: uri, ReadOnly: o.ReadOnly, AppName: o.AppName, Clock: o.Clock}
				if a, err := parseURI(uri); err == nil && a.Password == "" && o.Getenv != nil {
					options.Password = o.Getenv("PGPASSWORD")
				}
				l, err := Open(ctx, options)
				if err != nil {
					return nil, err
				}
				return l, nil
			},
			Redact: Redact,
			Form:   name + "://HOST/DATABASE",

			Secrets: []store.Secret{{Variable: "PGPASSWORD", Shared: true}},
		})
	}
}

// Open checks the options and makes a ledger of them. It reports everything that is wrong with them at once. It
// waits for no connection: a server that can't be reached shows in the operations, and they work once it can.
func Open(_ context.Context, o Options) (*Ledger, error) {
	a, err := parseURI(o.URI)
	faults := []error{err}
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("options: "+format, args...))
		}
	}
	pick := func(name string, own, fromURI, otherwise string) string {
		bad(own == "" || fromURI == "" || own == fromURI, "%s is given in the URI and in Options, and differs: give one", name)
		return cmp.Or(own, fromURI, otherwise)
	}
	a.schema = pick("schema", o.Schema, a.schema, DefaultSchema)
	a.table = pick("table", o.Table, a.table, DefaultTable)
	bad(schemaName.MatchString(a.schema), "Schema must be a name of A-Z a-z 0-9 _ that doesn't begin with a digit, at most 63")
	bad(tableName.MatchString(a.table), "Table must be a name of A-Z a-z 0-9 _ that doesn't begin with a digit, at most 56")
	a.appName = cmp.Or(o.AppName, a.appName, "slotlease")
	bad(isAppName(a.appName), "AppName must have 1 to 63 printable ASCII characters")
	bad(o.ServerSkew >= 0 && o.ServerSkew <= storekit.MostSkew, "ServerSkew %v must be from 0 to %v", o.ServerSkew, storekit.MostSkew)
	bad(o.ServerSkew == 0 || a.skew == 0 || o.ServerSkew == a.skew, "serverSkew %v in the URI and %v in Options: give one", a.skew, o.ServerSkew)
	a.skew = cmp.Or(o.ServerSkew, a.skew)
	bad(o.MaxConns >= 0 && o.MaxConns <= mostConns, "MaxConns %d must be from 1 to %d, or 0 for the default", o.MaxConns, mostConns)
	a.maxConns = cmp.Or(o.MaxConns, a.maxConns, defaultConns)
	a.connectTimeout = cmp.Or(a.connectTimeout, defaultConnectTimeout)
	bad(o.Password == "" || a.Password == "" || o.Password == a.Password, "a password is given in the URI and in Options, and differs: give one")
	a.Password = cmp.Or(o.Password, a.Password)
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	l := &Ledger{address: a, clock: o.Clock}
	if l.clock == nil {
		l.clock = clock.New()
	}
	if err := l.configure(); err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	l.life, l.end = context.WithCancel(context.Background())
	l.db = l.pool()
	l.fitness = storekit.NewFitness(l.clock, l.check)
	l.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "postgres", Secrets: l.secrets, Meaning: l.meaning, Fitness: l.fitness})
	l.SQL = storekit.NewSQL(storekit.SQLOptions{
		DB: l.db, Dialect: l.dialect(o.ReadOnly), Runner: l.runner, Fitness: l.fitness, Insert: l.insert, ReadOnly: o.ReadOnly,
	})
	return l, nil
}
