package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

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
	config, err := pgx.ParseConfig(text.String())
	l.secrets.Hide(a.Password)
	if a.Password != "" {
		l.secrets.HideLogin(a.User+":"+a.Password, "")
	}
	l.secrets.Publish(append([]string{a.Database, a.schema, a.table}, a.Hosts...)...)
	if err != nil {
		// Its text quotes all of the settings. Its cause is about files.
		cause := errors.Unwrap(err)
		if cause == nil {
			cause = errors.New("the settings of the environment (PGSSLCERT and the like) can't be used")
		}
		return fmt.Errorf("options: %s", l.secrets.Scrub(cause.Error()))
	}
	if config.Password != a.Password {
		l.secrets.Hide(config.Password)
		l.secrets.HideLogin(config.User+":"+config.Password, "")
	}
	config.ConnectTimeout = a.connectTimeout
	// Poolers take no others, and sessions may come with settings of their own: see the statements.
	config.RuntimeParams = map[string]string{"application_name": a.appName, "client_encoding": "UTF8"}
	config.DialFunc, config.LookupFunc = l.lines.dial, l.lines.lookUp
	config.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		pid, err := ready(ctx, c)
		if err == nil {
			l.lines.worked(c.Conn(), pid != c.PID())
		}
		return err
	}
	config.OnNotice = noticed
	// One message each way, and nothing that outlives the statement: behind a pooler, the next statement may go to
	// another server process.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.StatementCacheCapacity, config.DescriptionCacheCapacity = 0, 0
	l.config = config
	return nil
}

// pool makes the pool of connections.
func (l *Ledger) pool() *sql.DB {
	db := sql.OpenDB(connector{stdlib.GetConnector(*l.config, stdlib.OptionBeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		l.lines.sort(&c.Config)
		return nil
	}))})
	db.SetMaxOpenConns(l.address.maxConns)
	db.SetMaxIdleConns(min(l.address.maxConns, 2))
	db.SetConnMaxIdleTime(10 * time.Minute)
	return db
}

var (
	errStandby  = storekit.Unfit{Why: "the server is a standby (pg_is_in_recovery)"}
	errSessions = storekit.Unfit{Why: "the server lets sessions only read (default_transaction_read_only)"}
)

// ready returns an error unless a server takes writes, and else the process that executes statements. After an error
// the next host is tried.
func ready(ctx context.Context, c *pgconn.PgConn) (pid uint32, err error) {
	result := c.ExecParams(ctx, "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', pg_backend_pid()", nil, nil, nil, nil).Read()
	switch {
	case result.Err != nil:
		return 0, result.Err
	case len(result.Rows) != 1 || len(result.Rows[0]) != 3:
		return 0, errors.New("the server doesn't say whether it is a standby")
	case string(result.Rows[0][0]) != "f":
		return 0, errStandby
	case string(result.Rows[0][1]) != "f":
		return 0, errSessions
	}
	n, err := strconv.ParseUint(string(result.Rows[0][2]), 10, 32)
	return uint32(n), err
}

// allUnfit is why no server was used, if each that was named answered that it is unfit.
func allUnfit(err error) (storekit.Unfit, bool) {
	c, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return storekit.Unfit{}, false
	}
	tried := []error{c.Unwrap()}
	if joined, ok := c.Unwrap().(interface{ Unwrap() []error }); ok {
		tried = joined.Unwrap()
	}
	return storekit.AllUnfit(storekit.ConnectError{Tried: tried})
}
