//go:build sqlserver

package sqlserver

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

const (
	// DefaultSchema has the tables, unless Options or the URI say otherwise.
	DefaultSchema = "dbo"
	// DefaultTable keeps the records, unless Options or the URI say otherwise. The roster is beside it, in
	// worker_leases_roster.
	DefaultTable = "worker_leases"
	// rosterSuffix makes the name of the roster's table.
	rosterSuffix = "_roster"

	defaultConns          = 4
	defaultConnectTimeout = 3 * time.Second
	// defaultSkew is how far the clocks of several servers are assumed to be apart.
	defaultSkew = 100 * time.Millisecond
	// tick is how old a reading of the server's clock may be: Windows may let it go on by steps of 15.6 ms.
	tick = 16 * time.Millisecond
)

// Options of Open. URI is required.
type Options struct {
	// URI names servers, database and table:
	//
	//	sqlserver://USER:PASSWORD@HOST:1433/DATABASE?table=NAME
	//	sqlserver://USER@SERVER.database.windows.net/DATABASE
	//	sqlserver://HOST/DATABASE?instance=SQLEXPRESS
	//
	// Name the listener of an availability group. Of several hosts, HOST1,HOST2:1444, the first that takes writes is used.
	// A user DOMAIN%5CUSER logs in to Windows (NTLM). Microsoft Entra ID isn't supported.
	//
	// Parameters: schema, table, serverSkew=500ms, maxConns=4 and appName are the fields of the same names. instance names
	// an instance whose port SQL Server Browser knows. connectTimeout is for each host, 3s by default, at most 1m.
	//
	// encrypt is true by default: encrypted, and the server's certificate and name are verified, by the system's
	// authorities or those in the file tlsCA; hostNameInCertificate is that name, if it isn't the host's. encrypt=strict
	// is TLS from the first byte (SQL Server 2022, Azure). With trustServerCertificate=true nothing is verified, and with
	// encrypt=false the login alone is encrypted.
	URI string
	// Password of the URI's user. Default: that of the URI.
	Password string

	// Schema and Table default: those of the URI, else DefaultSchema and DefaultTable. At most 100 bytes each, of
	// A-Z a-z 0-9 _.
	Schema, Table string

	// ServerSkew is how far the clocks of servers that take writes, now or later, are assumed to be apart. It is part
	// of each stamp. Default: that of the URI, else 0, or 100 ms as soon as there is another server: the URI has
	// several hosts, the database is in an availability group, or it is Azure's. It can't be negative; at most 1 h.
	ServerSkew time.Duration

	// MaxConns bounds the connections to the server. Default: that of the URI, else 4. From 1 to 1000.
	MaxConns int
	// AppName is the program_name in the server's sys.dm_exec_sessions. Default: that of the URI, else slotlease.
	AppName string
	// ReadOnly is for people who look: Append, Trim, Init and the like fail with store.ErrDenied.
	ReadOnly bool

	// Clock times the checks of the server, and bounds what it takes to connect. It doesn't measure leases. Default:
	// the real clock.
	Clock clock.Clock
}

// passwordVariable is that of sqlcmd.
const passwordVariable = "SQLCMDPASSWORD"

func init() {
	store.Register("sqlserver", store.Driver{
		Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
			options := Options{URI: uri, ReadOnly: o.ReadOnly, AppName: o.AppName, Clock: o.Clock}
			if a, err := parseURI(uri); err == nil && a.Password == "" {
				options.Password = getenv(o)(passwordVariable)
			}
			l, err := Open(ctx, options)
			if err != nil {
				return nil, err
			}
			return l, nil
		},
		Redact: Redact,
		Form:   "sqlserver://HOST/DATABASE",

		Secrets: []store.Secret{{Variable: passwordVariable, Shared: true}},
	})
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
	bad(o.Schema == "" || a.schema == "" || o.Schema == a.schema, "schema is given in the URI and in Options, and differs: give one")
	a.schema = cmp.Or(o.Schema, a.schema, DefaultSchema)
	bad(schemaName.MatchString(a.schema), "Schema must be a name of A-Z a-z 0-9 _ that doesn't begin with a digit, at most 100")
	bad(o.Table == "" || a.table == "" || o.Table == a.table, "table is given in the URI and in Options, and differs: give one")
	a.table = cmp.Or(o.Table, a.table, DefaultTable)
	bad(tableName.MatchString(a.table), "Table must be a name of A-Z a-z 0-9 _ that doesn't begin with a digit, at most 100")
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
		return nil, fmt.Errorf("sqlserver: open: %w", err)
	}
	l := &Ledger{address: a, clock: o.Clock}
	if l.clock == nil {
		l.clock = clock.New()
	}
	l.hide()
	if l.db, err = l.pool(); err != nil {
		return nil, fmt.Errorf("sqlserver: open: %w", err)
	}
	l.fitness = storekit.NewFitness(l.clock, l.check)
	l.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "sqlserver", Secrets: l.secrets, Meaning: l.meaning, Fitness: l.fitness})
	l.SQL = storekit.NewSQL(storekit.SQLOptions{
		DB: l.db, Dialect: l.dialect(), Runner: l.runner, Fitness: l.fitness, Insert: l.insert, ReadOnly: o.ReadOnly,
	})
	return l, nil
}

// hide keeps the password out of errors.
func (l *Ledger) hide() {
	a := &l.address
	if a.Password != "" {
		l.secrets.Hide(a.Password)
		l.secrets.HideLogin(a.User+":"+a.Password, "")
	}
	l.secrets.Publish(append([]string{a.Database, a.schema, a.table}, a.Hosts...)...)
}
