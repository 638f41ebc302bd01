package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// Where ledgers are kept, unless Options or the URI say otherwise.
const (
	DefaultSchema = "public"
	// DefaultTable keeps the records. The roster is beside it, in worker_leases_roster.
	DefaultTable = "worker_leases"
)

// Options of Open. URI, Pool or DB is required.
type Options struct {
	// URI names servers, database and table:
	//
	//	postgres://USER:PASSWORD@HOST:PORT/DATABASE?table=NAME
	//	postgres://USER@HOST1,HOST2:5433/DATABASE?sslrootcert=/etc/ca.pem
	//	postgres:///DATABASE?host=/var/run/postgresql
	//	postgres://%2Fvar%2Frun%2Fpostgresql:5433/DATABASE
	//
	// Of several hosts the primary is used, in whatever order. Parameters: schema, table, serverSkew=500ms and
	// maxConns=4 are the fields of the same names; sslmode, sslrootcert, sslcert, sslkey, channel_binding,
	// connect_timeout (in seconds for each host, 3 by default, at most 60) and application_name are libpq's.
	//
	// sslmode is verify-full by default, and disable if all hosts are on the loopback interface or Unix sockets. There is no TLS on a
	// Unix socket, whatever sslmode is. As with libpq, sslmode=require with sslrootcert is verify-ca, and sslrootcert=system, the
	// system's authorities, is verify-full.
	//
	// Where the URI has none, user, password, certificates and keys come from PGUSER, PGPASSWORD, PGPASSFILE,
	// PGSSLROOTCERT, PGSSLCERT, PGSSLKEY and the files that libpq reads. Files are read again for each new connection.
	URI string
	// Password of the URI's user. Default: that of the URI, else of the environment or the password file.
	Password string
	// PasswordFunc gives the current password or token, if it changes. It is asked for each new connection, and has 10 s by Clock.
	// What it gives is logged nowhere, and its errors are those of the operations.
	PasswordFunc func(ctx context.Context) (string, error)

	// Pool is the application's, in place of URI and passwords, and DB the same, opened with github.com/jackc/pgx/v5/stdlib.
	// Connections are taken for a statement each, at most MaxConns at a time. Their sessions stay as they are. While there is a watch,
	// the handle has one more of its own, made with the pool's settings: it is none of the pool's, and the server counts it. An operation that gets none in 3 s fails, and says that the pool is exhausted. Close leaves the pool open.
	// Of a Pool, whose settings name its hosts, these are asked as those of a URI are. Those of a DB aren't known.
	Pool *pgxpool.Pool
	DB   *sql.DB

	// Schema default: that of the URI, else DefaultSchema. It isn't searched for, since users may have
	// different search paths.
	Schema string
	// Table default: that of the URI, else DefaultTable. At most 56 bytes, of A-Z a-z 0-9 _.
	Table string

	// ServerSkew is how far the clocks of the primary and of those that may replace it are assumed to be apart. It
	// is part of each stamp. Default: that of the URI, else 0, or 100 ms as soon as there is another server: the
	// URI has several hosts, or standbys are connected. It can't be negative; at most 1 h.
	ServerSkew time.Duration

	// MaxConns bounds the connections to the server, of which one does mostly, and those that a Pool or DB lends. Default: that of the URI, else
	// 4. From 1 to 1000.
	MaxConns int
	// AppName is what the server's pg_stat_activity shows. Default: that of the URI, else slotlease. That of a Pool or DB is its own.
	AppName string
	// ReadOnly is for people who look: reads don't wait for the synchronous standbys, so that they work while none
	// answers. No lease may be decided by what they show. Append, Trim, Init and the like fail with store.ErrDenied.
	ReadOnly bool

	// Clock times the checks of the server. It doesn't measure leases. Default: the real clock.
	Clock clock.Clock
}

func init() {
	sqldb.Register(&form, read, func(ctx context.Context, uri, password string, o store.OpenOptions) (*Ledger, error) {
		return Open(ctx, Options{URI: uri, Password: password, ReadOnly: o.ReadOnly, AppName: o.AppName, Clock: o.Clock})
	})
}

// Open checks the options and makes a ledger of them. It reports everything that is wrong with them at once. It
// waits for no connection: a server that can't be reached shows in the operations, and they work once it can.
func Open(_ context.Context, o Options) (*Ledger, error) {
	l := &Ledger{name: rand.Text(), inserts: map[[2]bool]string{}, often: map[string]bool{}, askAfter: askAfter}
	lent := o.Pool != nil || o.DB != nil
	var faults []error
	if !lent {
		var err error
		l.address, err = parseURI(o.URI)
		faults = append(faults, err)
	}
	if o.Pool != nil && o.DB != nil {
		faults = append(faults, errors.New("options: Pool and DB are both given: give one"))
	}
	core, err := sqldb.Open[*facts](&form, &l.address.Address, sqldb.Options{
		URI: o.URI, Password: o.Password, PasswordFunc: o.PasswordFunc, Lent: lent, Schema: o.Schema, Table: o.Table,
		ServerSkew: o.ServerSkew, MaxConns: o.MaxConns, AppName: o.AppName, Clock: o.Clock,
	}, faults...)
	if err != nil {
		return nil, err
	}
	l.core, l.clock = core, core.Clock
	if lent {
		l.lend(o)
	} else if err := l.configure(); err != nil {
		return nil, form.Failed(err)
	}
	for _, how := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		text := l.insertion(how[0], how[1])
		l.inserts[how], l.often[text] = text, true
	}
	l.db, l.aside = l.pool(), l.pool()
	core.DB = l.db
	l.Ledger = core.Start(l.parts(o.ReadOnly))
	return l, nil
}

// parts are what is PostgreSQL's own.
func (l *Ledger) parts(readOnly bool) sqldb.Parts[*facts] {
	return sqldb.Parts[*facts]{
		Dialect: l.dialect(readOnly), Insert: l.insert, ReadOnly: readOnly, Meaning: l.meaning, Linger: l.linger, Waits: l.waitsFor,
		Look: l.lookAtPrimary, AskHosts: l.askHosts, Unusable: unusable, NameIt: nameThePrimary,
		Several: func(f *facts) bool { return f.Standbys > 0 }, Unasked: l.unasked,
		Stamp:  func(s *store.Stamp) { s.History = l.history(s.Server) },
		Checks: l.checks(), Columns: ledgerColumns, Table: tableFlaws, Kept: "an ordinary table with the key (worker_type, seq), in byte order",
		Lacks: l.lacks, Durability: l.durability,
		Create: l.create, Script: l.script, Close: l.closeRest,
	}
}
