package postgres

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// SQLSTATE codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	codeWarning          = "01000"
	codeFeature          = "0A000" // feature_not_supported, as an insert into a table with a rule
	codeInvalidText      = "22P02"
	codeNoText           = "22P05" // untranslatable_character, as \u0000 in JSON
	codeNotNull          = "23502"
	codeForeignKey       = "23503"
	codeUnique           = "23505"
	codeCheck            = "23514"
	codeExclusion        = "23P01"
	codeReadOnly         = "25006"
	codeNoDatabase       = "3D000"
	codeNoSchema         = "3F000"
	codeSerialization    = "40001"
	codeStatementUnknown = "40003" // statement_completion_unknown
	codeDeadlock         = "40P01"
	codeDenied           = "42501"
	codeNoTable          = "42P01"
	codeWrongObject      = "42809"
	codeTooManyConns     = "53300"
	codeTooBig           = "54000" // program_limit_exceeded, as the queue of notifications when it is full
	codeLockTimeout      = "55P03"
	codeCancelled        = "57014"
	codeAdminShutdown    = "57P01"
	codeIdleSession      = "57P05"
)

// mistakes are the codes of statements that the server can't parse, or that name what isn't there (columns, functions, parameters), or
// have types that don't fit; 42P10 is that no unique index fits ON CONFLICT.
var mistakes = []string{"42601", "42702", "42703", "42725", "42803", "42804", "42846", "42883", "42P02", "42P08", "42P10", "42P18"}

// rolledBack are the classes of errors with which a server ends a statement that it has rolled back. An error of
// another class may come from a proxy, or from a server that fails.
var rolledBack = []string{"0A", "0B", "20", "21", "22", "23", "24", "25", "26", "28", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "44", "53", "54", "55", "P0"}

// meaning is what an error of the driver means.
func (l *Ledger) meaning(err error) storekit.Meaning {
	m := storekit.Meaning{NotStored: unsent(err)}
	if _, ok := errors.AsType[unreplicated](err); ok {
		return storekit.Meaning{Sound: true}
	}
	if why, all := storekit.AllUnfit(err); all {
		return l.core.Unfit(why)
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return m
	}
	if isGuard(e) {
		return l.core.Unfit(errStandby)
	}
	m.NotStored = m.NotStored || hasRolledBack(e)
	if m.NotStored && l.mistaken(e) {
		return sqldb.Mistaken(e.Code, e.Message)
	}
	switch e.Code {
	case codeNoTable, codeNoSchema:
		m.Is, m.Sound = store.ErrMissing, false
	case codeNoDatabase:
		missing := l.core.NoDatabase()
		missing.NotStored = m.NotStored
		return missing
	case codeDenied:
		m.Is, m.Sound = store.ErrDenied, true
	case codeReadOnly:
		return l.core.Unfit(storekit.Unfit{Why: "the server takes no writes: " + e.Message})
	case codeUnique, codeNotNull, codeForeignKey, codeCheck, codeExclusion:
		// The key's own conflict is no error.
		if m.NotStored {
			m.Is, m.Text = store.ErrRefused, l.constraint(e)
		}
	case codeWrongObject, codeFeature:
		if m.NotStored {
			m.Is = store.ErrRefused
		}
	case codeSerialization, codeDeadlock, codeCancelled:
		m.Sound = true
	case codeLockTimeout:
		m.Sound = true
		m.Text = fmt.Sprintf("another transaction has held a lock on table %s or a row of it for more than 1 s: pg_locks and pg_stat_activity say whose (%s)", l.core.Name(), e.Error())
	case codeTooManyConns:
		m.Sound = true
		m.Text = e.Message + ": ALTER SYSTEM SET max_connections, and restart the server, or put a pooler in between"
	default:
		if strings.HasPrefix(e.Code, "28") {
			m.Is, m.Sound = store.ErrDenied, true
		}
	}
	return m
}

// mistaken reports whether an error is that of a mistake in the statement or in the tables.
func (l *Ledger) mistaken(e *pgconn.PgError) bool {
	return slices.Contains(mistakes, e.Code) || e.Code == codeNoTable && !strings.Contains(e.Message, l.address.Table)
}

// hasRolledBack reports whether a server has surely rolled back the statement that it ends with an error. FATAL and
// PANIC end the connection, also after a commit whose reply is then missing.
func hasRolledBack(e *pgconn.PgError) bool {
	if isFatal(e.SeverityUnlocalized) || isFatal(e.Severity) || e.Code == codeStatementUnknown {
		return false
	}
	return len(e.Code) == 5 && slices.Contains(rolledBack, e.Code[:2]) || e.Code == codeCancelled
}

// constraint says which constraint kept a row out.
func (l *Ledger) constraint(e *pgconn.PgError) string {
	what := e.ConstraintName
	if what == "" {
		what = "column " + e.ColumnName
	}
	return fmt.Sprintf("table %s.%s has a constraint besides its key, %s, which keeps records out: drop it (%s)", e.SchemaName, e.TableName, what, e.Message)
}

// isFatal reports whether a severity, of a server that says it in its own language alone, isn't that of an error
// which leaves the connection as it is.
func isFatal(severity string) bool { return severity == "FATAL" || severity == "PANIC" }

// isGuard reports whether an error is that of onPrimary.
func isGuard(e *pgconn.PgError) bool {
	return e.Code == codeInvalidText && strings.Contains(e.Message, standbyText)
}

// unsent reports whether nothing was sent of a statement: there was no connection, or it was found dead before.
func unsent(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	return errors.Is(err, driver.ErrBadConn) || pgconn.SafeToRetry(err)
}
