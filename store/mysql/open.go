package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/go-sql-driver/mysql"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// DefaultTable keeps the records, unless Options or the URI say otherwise. The roster is beside it, in
// worker_leases_roster.
const DefaultTable = "worker_leases"

// Options of Open. URI, or DB and Database, are required.
type Options struct {
	// URI names servers, database and table:
	//
	//	mysql://USER:PASSWORD@HOST:PORT/DATABASE?table=NAME
	//	mysql://USER@HOST1,HOST2:3307/DATABASE?tlsCA=/etc/ca.pem
	//	mysql://USER@/DATABASE?socket=/run/mysqld/mysqld.sock
	//
	// mariadb:// means the same. Of several hosts the first that takes writes is used. Parameters: table,
	// serverSkew=500ms, maxConns=4 and appName are the fields of the same names. connectTimeout is for each host, 3s by
	// default, at most 1m.
	//
	// tls is true by default: encrypted, and the server's certificate and name are verified, by the system's
	// authorities or those in the file tlsCA. With tls=skip-verify they aren't, and with tls=false nothing is
	// encrypted, as is the default if all hosts are on the loopback interface. tlsCert and tlsKey are files with the
	// client's certificate and key. All of these files are read again for each new connection.
	URI string
	// Password of the URI's user. Default: that of the URI.
	Password string
	// PasswordFunc gives the current password or token, if it changes. It is asked for each new connection, and has 10 s by Clock.
	// What it gives is logged nowhere, and its errors are those of the operations. With tls=true, a server that asks for it as it is,
	// as for tokens, gets it.
	PasswordFunc func(ctx context.Context) (string, error)

	// DB is the application's, opened with github.com/go-sql-driver/mysql, in place of URI and passwords. Connections are taken for an
	// operation each, at most MaxConns at a time. Their sessions are set up for that, and made what they were. An operation that gets
	// none in 3 s fails, and says that the pool is exhausted. Close leaves DB open. Which servers it may lead to isn't known, so they
	// aren't asked whether two of them take writes, and their clocks are assumed to be within ServerSkew.
	DB *sql.DB
	// Database has the table. Required with DB, and that of the URI else.
	Database string

	// Table default: that of the URI, else DefaultTable. At most 57 bytes, of A-Z a-z 0-9 _.
	Table string

	// ServerSkew is how far the clocks of servers that take writes, now or later, are assumed to be apart. It is part
	// of each stamp. Default: that of the URI, else 0, or 100 ms as soon as there is another server: the URI has
	// several hosts, a replica is connected, the server is one of a cluster, or there is a proxy. It can't be
	// negative; at most 1 h.
	ServerSkew time.Duration

	// MaxConns bounds the connections to the server, and those that DB lends. Default: that of the URI, else 4. From 1 to 1000.
	MaxConns int
	// AppName is the program_name in the server's performance_schema. Default: that of the URI, else slotlease.
	// That of DB is its own.
	AppName string
	// ReadOnly is for people who look: Append, Trim, Init and the like fail with store.ErrDenied.
	ReadOnly bool

	// Clock times the checks of the server, and bounds what it takes to connect. It doesn't measure leases. Default:
	// the real clock.
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
	l := &Ledger{}
	var faults []error
	switch {
	case o.DB == nil:
		var err error
		l.address, err = parseURI(o.URI)
		faults = append(faults, err)
		if o.Database != "" && o.Database != l.address.Database {
			faults = append(faults, errors.New("options: Database is for DB, and the URI names another: leave it out"))
		}
	case !isDatabase(o.Database):
		faults = append(faults, errors.New("options: Database must be the name of DB's database, without / \\ . `"))
	default:
		l.address.Database = o.Database
	}
	core, err := sqldb.Open[*facts](&form, &l.address.Address, sqldb.Options{
		URI: o.URI, Password: o.Password, PasswordFunc: o.PasswordFunc, Lent: o.DB != nil, Table: o.Table,
		ServerSkew: o.ServerSkew, MaxConns: o.MaxConns, AppName: o.AppName, Clock: o.Clock,
	}, faults...)
	if err != nil {
		return nil, err
	}
	l.core, l.clock = core, core.Clock
	if o.DB != nil {
		core.Lend(o.DB, nil)
	} else if a := &l.address; a.tls != tlsOff {
		if l.tls, err = sqldb.TLS(a.ca, a.cert, a.key, &tls.Config{InsecureSkipVerify: a.tls == tlsSkip}); err != nil {
			return nil, form.Failed(err)
		}
	}
	core.MakePool(mysql.MySQLDriver{}, l.connect, l.borrow)
	l.db = core.DB
	l.Ledger = core.Start(l.parts(o.ReadOnly))
	return l, nil
}

// parts are what is MySQL's own.
func (l *Ledger) parts(readOnly bool) sqldb.Parts[*facts] {
	return sqldb.Parts[*facts]{
		Dialect: l.dialect(), Insert: l.insert, ReadOnly: readOnly, Meaning: l.meaning,
		Look: l.look, AskHosts: l.askHosts, Writers: l.writers, Unusable: unusable, NameIt: nameTheRightOne,
		Several: (*facts).several, Unasked: l.unasked,
		Stamp:  func(s *store.Stamp) { s.History = l.history(s.Server) },
		Checks: l.checks(), Columns: ledgerColumns, Table: tableFlaws, Kept: "InnoDB's, with the key (worker_type, seq), byte by byte",
		Hooks: ", as far as the user may know (triggers: with the right TRIGGER)",
		Probe: l.filled(`SELECT 1 FROM LEDGER LIMIT 0`), Lacks: l.lacks,
		Durability: (*facts).durability,
		Create:     l.create, Script: l.script,
	}
}
