package postgres

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// configure makes the driver's configuration.
func (l *Ledger) configure() error {
	a := &l.address
	var text strings.Builder
	set := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%s='%s' ", name, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value))
		}
	}
	set("host", strings.Join(a.Hosts, ","))
	set("port", strings.Join(a.Ports, ","))
	set("dbname", a.Database)
	set("user", a.User)
	set("password", a.Password)
	set("sslmode", a.sslmode)
	set("sslrootcert", a.sslrootcert)
	set("sslcert", a.sslcert)
	set("sslkey", a.sslkey)
	set("channel_binding", a.channelBinding)
	set("target_session_attrs", "any") // ready asks for more.
	var err error
	if l.files, err = storekit.NewRenewed(func() (*pgx.ConnConfig, error) { return l.parse(text.String()) }, a.sslrootcert, a.sslcert, a.sslkey,
		os.Getenv("PGSSLROOTCERT"), os.Getenv("PGSSLCERT"), os.Getenv("PGSSLKEY"), os.Getenv("PGPASSFILE")); err != nil {
		return fmt.Errorf("options: %w", err)
	}
	config := l.files.Now().Copy()
	if config.Password != a.Password {
		l.core.Secrets.Hide(config.Password)
		l.core.Secrets.HideLogin(config.User+":"+config.Password, "")
	}
	l.before = func(ctx context.Context, c *pgx.ConnConfig) (err error) {
		now := l.files.Now().Copy()
		c.TLSConfig, c.Fallbacks = now.TLSConfig, now.Fallbacks
		c.User, c.Password = l.core.Login(now.User, now.Password)
		if l.core.Password != nil {
			c.Password, err = l.core.Password.Get(ctx)
		}
		return err
	}
	config.ConnectTimeout = a.ConnectTimeout
	// Poolers take no others, and sessions may come with settings of their own: see the statements.
	config.RuntimeParams = map[string]string{"application_name": a.AppName, "client_encoding": "UTF8"}
	config.DialFunc = l.dial
	config.ValidateConnect = l.validate
	config.OnNotice, config.OnNotification = noticed, l.notified
	// One message each way, and nothing that outlives the statement: behind a pooler, the next statement may go to
	// another server process.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = mostPrepared, 0
	l.config = config
	return nil
}

// parse has the driver read the settings, and the files that these and the environment name.
func (l *Ledger) parse(text string) (*pgx.ConnConfig, error) {
	a := &l.address
	root := cmp.Or(a.sslrootcert, os.Getenv("PGSSLROOTCERT"))
	if root != "system" && a.sslmode != "disable" {
		if err := storekit.CheckAuthorities(root); err != nil {
			return nil, fmt.Errorf("sslrootcert: %w", err)
		}
	}
	config, err := pgx.ParseConfig(text)
	switch {
	case err != nil:
		// Its text quotes all of the settings. Its cause is about files.
		cause := errors.Unwrap(err)
		if cause == nil {
			cause = errors.New("the settings of the environment (PGSSLCERT and the like) can't be used")
		}
		of := ""
		if strings.Contains(err.Error(), "failed to configure TLS") {
			of = "sslrootcert, sslcert and sslkey: "
		}
		return nil, errors.New(of + l.core.Secrets.Scrub(cause.Error()))
	case config.Password == "" && l.config != nil && l.config.Password != "":
		return nil, errors.New("the password file (PGPASSFILE, or .pgpass) has no password for this user any more")
	case l.config != nil && trustsMore(config.TLSConfig, l.config.TLSConfig):
		return nil, errors.New("a file is gone by which the server was verified, or this client")
	}
	return config, nil
}

// trustsMore reports that less is verified by a configuration than by the first: where the default file of authorities isn't there, for
// one, libpq's sslmode=require verifies nothing, and others trust the system's authorities.
func trustsMore(now, first *tls.Config) bool {
	switch {
	case first == nil:
		return false
	case now == nil, now.RootCAs == nil && first.RootCAs != nil:
		return true
	case now.InsecureSkipVerify && !first.InsecureSkipVerify, len(now.Certificates) < len(first.Certificates):
		return true
	}
	return now.VerifyPeerCertificate == nil && first.VerifyPeerCertificate != nil || now.VerifyConnection == nil && first.VerifyConnection != nil
}

// pool makes the pool of connections.
func (l *Ledger) pool() *sql.DB {
	if l.core.Lender != nil {
		return sqldb.OpenLent(sqldb.Connector{Own: stdlib.GetDefaultDriver(), Open: l.borrow}, l.address.MaxConns)
	}
	db := sql.OpenDB(sqldb.Connector{Own: stdlib.GetDefaultDriver(), Open: func(ctx context.Context) (driver.Conn, error) {
		return l.core.FirstHost(context.WithValue(ctx, asks{}, true), int(l.last.Load()), l.open)
	}})
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	db.SetConnMaxIdleTime(unusedFor)
	return db
}

// open opens a connection to the nth host. The next one begins there: a machine that is silent costs up to a time-out.
func (l *Ledger) open(ctx context.Context, n int) (driver.Conn, error) {
	config := l.config.Copy()
	if err := l.beforeConnect(ctx, config); err != nil {
		return nil, err
	}
	take(&config.Config, n)
	never := stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })
	opened, err := stdlib.GetConnector(*config, never).Connect(ctx)
	if e, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		tried := causes(e)
		for i, why := range tried {
			if errors.Is(why, context.DeadlineExceeded) && ctx.Err() == nil {
				why = fmt.Errorf("no connection in %v (%s): %w", config.ConnectTimeout, form.Timeout, why)
			}
			tried[i] = l.core.Logins.Explain(l.files.Explain(why))
		}
		return nil, storekit.ConnectError{Tried: tried}
	}
	if err != nil {
		return nil, err
	}
	l.last.Store(int64(n))
	own := opened.(*stdlib.Conn)
	return &conn{Conn: own, of: l, pooled: own.Conn().PgConn().CustomData()[isPooled] != nil}, nil
}

// take lets a configuration lead to its nth host, by the ways there are.
func take(c *pgconn.Config, n int) {
	all := hostsOf(c)
	ways := all[min(n, len(all)-1)] // One that is named twice in a row has one entry.
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
}

// causes are why the driver has no connection, for each address that it tried.
func causes(e *pgconn.ConnectError) []error {
	if joined, ok := e.Unwrap().(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{e.Unwrap()}
}

// beforeConnect completes the settings of a connection.
func (l *Ledger) beforeConnect(ctx context.Context, c *pgx.ConnConfig) error {
	if l.before == nil {
		return nil
	}
	return l.before(ctx, c)
}

const (
	// mostPrepared bounds the statements that a connection has prepared.
	mostPrepared = 16
	// unusedFor is how long a connection stays open that is of no use.
	unusedFor = time.Minute
)

var (
	errStandby  = storekit.Unfit{Why: "the server is a standby (pg_is_in_recovery)"}
	errSessions = storekit.Unfit{Why: "the server lets sessions only read (default_transaction_read_only)"}
)

// answer is what a server says of itself over a new connection.
type answer struct {
	standby, readOnly bool
	// pid is the process that executes statements, and server its name, see serverName.
	pid    uint32
	server string
	at     time.Time
	// isolation is the level of its transactions.
	isolation string
}

// readiness asks that. If the session is the connection's own, no statement waits long for a lock on the table, either, which comes
// before what the statement itself sets, and what is prepared is planned once.
var readiness = sync.OnceValue(func() string {
	return catalogued(strings.NewReplacer("CLOCK", clockNow, "SERVER", serverName).Replace(
		`SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', pg_backend_pid(), SERVER, CLOCK, current_setting('transaction_isolation'),
		CASE WHEN pg_backend_pid() = $1::bigint THEN set_config('lock_timeout', '` + lockTimeout + `', false)
			|| CASE WHEN current_setting('server_version_num')::integer >= 120000 THEN set_config('plan_cache_mode', 'force_generic_plan', false) END END`))
})

// ask asks a server what it is, and sets up the session, if that is the connection's own.
func (l *Ledger) ask(ctx context.Context, c *pgconn.PgConn) (a answer, err error) {
	own := uint64(c.PID())
	if l.core.Lender != nil {
		own = 0 // The session is the application's.
	}
	result := c.ExecParams(ctx, readiness(), [][]byte{strconv.AppendUint(nil, own, 10)}, nil, nil, nil).Read()
	switch {
	case result.Err != nil:
		return a, result.Err
	case len(result.Rows) != 1 || len(result.Rows[0]) != 7:
		return a, errors.New("the server doesn't say whether it is a standby")
	}
	row := result.Rows[0]
	pid, err := strconv.ParseUint(string(row[2]), 10, 32)
	micros, errTime := strconv.ParseInt(string(row[4]), 10, 64)
	return answer{
		standby: string(row[0]) != "f", readOnly: string(row[1]) != "f", pid: uint32(pid), server: string(row[3]), at: time.UnixMicro(micros), isolation: string(row[5]),
	}, errors.Join(err, errTime)
}

// setByClient reports whether it is the application that lets a session only read, and not the server, the database or the role.
func setByClient(ctx context.Context, c *pgconn.PgConn) bool {
	result := c.ExecParams(ctx, catalogued(`SELECT 1 FROM pg_settings WHERE name = 'default_transaction_read_only' AND `+isOneOf("source", "client", "session")), nil, nil, nil, nil).Read()
	return len(result.Rows) > 0
}

// validate returns an error unless a server takes writes, and its sessions the statements. Then the next host is tried.
func (l *Ledger) validate(ctx context.Context, c *pgconn.PgConn) error {
	a, err := l.takesWrites(ctx, c)
	if err == nil && l.core.Lender != nil && a.isolation != "read committed" {
		return unfitPool("default_transaction_isolation "+a.isolation, "leave it at read committed, or give URI: at another level a statement fails because of others")
	}
	return err
}

// takesWrites returns an error unless a server does. When another one is found than the one before, the other hosts are asked,
// too.
func (l *Ledger) takesWrites(ctx context.Context, c *pgconn.PgConn) (answer, error) {
	a, err := l.ask(ctx, c)
	switch {
	case err != nil:
		return a, err
	case a.standby:
		return a, errStandby
	case a.readOnly && l.core.Lender != nil && setByClient(ctx, c):
		return a, unfitPool("default_transaction_read_only on", "leave it off, or give URI")
	case a.readOnly:
		return a, errSessions
	}
	moved, err := l.core.Moved(ctx, process(a.server))
	if err != nil {
		return a, err
	}
	if moved {
		l.core.Fitness.Suspect() // What is known is about the other server.
	}
	if a.pid != c.PID() {
		c.CustomData()[isPooled] = true
		l.pooled.Store(true)
	} else {
		l.direct.Store(true)
	}
	return a, nil
}
