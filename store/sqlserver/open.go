//go:build sqlserver

package sqlserver

import (
	"context"
	"crypto/tls"
	"database/sql"
	"time"

	"github.com/benbjohnson/clock"
	mssql "github.com/microsoft/go-mssqldb"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
)

const (
	// DefaultSchema has the tables, unless Options or the URI say otherwise.
	DefaultSchema = "dbo"
	// DefaultTable keeps the records, unless Options or the URI say otherwise. The roster is beside it, in
	// worker_leases_roster.
	DefaultTable = "worker_leases"
	// tick is how old a reading of the server's clock may be: Windows may let it go on by steps of 15.6 ms.
	tick = 16 * time.Millisecond
)

// Options of Open. URI or DB is required.
type Options struct {
	// URI names servers, database and table:
	//
	//	sqlserver://USER:PASSWORD@HOST:1433/DATABASE?table=NAME
	//	sqlserver://USER@SERVER.database.windows.net/DATABASE
	//	sqlserver://HOST/DATABASE?instance=SQLEXPRESS
	//
	// Name the listener of an availability group. Of several hosts, HOST1,HOST2:1444, the first that takes writes is used.
	// A user DOMAIN%5CUSER logs in to Windows (NTLM). For Microsoft Entra ID give DB.
	//
	// Parameters: schema, table, serverSkew=500ms, maxConns=4 and appName are the fields of the same names. instance names
	// an instance whose port SQL Server Browser knows. connectTimeout is for each host, 3s by default, at most 1m.
	//
	// encrypt is true by default: encrypted, and the server's certificate and name are verified, by the system's
	// authorities or those in the file tlsCA, which is read again for each new connection; hostNameInCertificate is that
	// name, if it isn't the host's. encrypt=strict is TLS from the first byte (SQL Server 2022, Azure). With trustServerCertificate=true nothing is verified, and with
	// encrypt=false the login alone is encrypted.
	URI string
	// Password of the URI's user. Default: that of the URI.
	Password string
	// PasswordFunc gives the current password, if it changes. It is asked for each new connection, and has 10 s by Clock. What it
	// gives is logged nowhere, and its errors are those of the operations.
	PasswordFunc func(ctx context.Context) (string, error)

	// DB is the application's, opened with github.com/microsoft/go-mssqldb, in place of URI and passwords, also for Microsoft Entra ID.
	// Connections are taken for an operation each, at most MaxConns at a time. Their sessions are set up for that, and the driver resets
	// them. An operation that gets none in 3 s fails, and says that the pool is exhausted. Close leaves DB open. Which servers it may
	// lead to isn't known, so they aren't asked whether two of them take writes.
	DB *sql.DB

	// Schema and Table default: those of the URI, else DefaultSchema and DefaultTable. At most 100 bytes each, of
	// A-Z a-z 0-9 _.
	Schema, Table string

	// ServerSkew is how far the clocks of servers that take writes, now or later, are assumed to be apart. It is part
	// of each stamp. Default: that of the URI, else 0, or 100 ms as soon as there is another server: the URI has
	// several hosts, the database is in an availability group, or it is Azure's. It can't be negative; at most 1 h.
	ServerSkew time.Duration

	// MaxConns bounds the connections to the server, and those that DB lends. Default: that of the URI, else 4. From 1 to 1000.
	MaxConns int
	// AppName is the program_name in the server's sys.dm_exec_sessions. Default: that of the URI, else slotlease.
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
	if o.DB == nil {
		var err error
		l.address, err = parseURI(o.URI)
		faults = append(faults, err)
	}
	core, err := sqldb.Open[*facts](&form, &l.address.Address, sqldb.Options{
		URI: o.URI, Password: o.Password, PasswordFunc: o.PasswordFunc, Lent: o.DB != nil, Schema: o.Schema, Table: o.Table,
		ServerSkew: o.ServerSkew, MaxConns: o.MaxConns, AppName: o.AppName, Clock: o.Clock,
	}, faults...)
	if err != nil {
		return nil, err
	}
	l.core, l.clock = core, core.Clock
	if o.DB != nil {
		core.Lend(o.DB, nil)
	}
	if l.tls, err = sqldb.TLS(l.address.ca, "", "", &tls.Config{
		InsecureSkipVerify:          l.address.trust || l.address.encrypt == encryptNo,
		DynamicRecordSizingDisabled: true, // The server expects a message of the protocol in one record.
	}); err != nil {
		return nil, form.Failed(err)
	}
	core.MakePool(&mssql.Driver{}, l.connect, l.borrow)
	l.db = core.DB
	l.Ledger = core.Start(l.parts(o.ReadOnly))
	return l, nil
}

// parts are what is SQL Server's own.
func (l *Ledger) parts(readOnly bool) sqldb.Parts[*facts] {
	return sqldb.Parts[*facts]{
		Dialect: l.dialect(), Insert: l.insert, ReadOnly: readOnly, Meaning: l.meaning,
		Look: l.look, AskHosts: l.askHosts, Unusable: unusable, NameIt: nameTheRightOne, Several: (*facts).several,
		Unasked: func(*facts) string {
			if l.core.Skew() == 0 {
				return ""
			}
			return "this store asks no other server for its clock"
		},
		Stamp:  func(s *store.Stamp) { s.MaxAge = tick },
		Checks: l.checks(), Columns: ledgerColumns, Table: tableFlaws, Kept: "with the key (worker_type, seq), byte by byte",
		Hooks: ", as far as the user may know (policies: with VIEW DEFINITION)",
		Probe: l.filled(askAbsent), Lacks: l.lacks, Grantee: "the user",
		Durability: (*facts).durability,
		Untested:   untested,
		Create:     l.create, Script: l.script,
	}
}
