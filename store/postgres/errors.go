package postgres

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// SQLSTATE codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
const (
	codeWarning          = "01000"
	codeFeature          = "0A000" // feature_not_supported, as an insert into a table with a rule
	codeInvalidText      = "22P02"
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
	codeNoColumn         = "42703"
	codeOtherType        = "42804"
	codeNoKey            = "42P10" // no unique index fits ON CONFLICT
	codeWrongObject      = "42809"
	codeTooManyConns     = "53300"
	codeTooBig           = "54000" // program_limit_exceeded, as the queue of notifications when it is full
	codeCancelled        = "57014"
	codeAdminShutdown    = "57P01"
)

// rolledBack are the classes of errors with which a server ends a statement that it has rolled back. An error of
// another class may come from a proxy, or from a server that fails.
var rolledBack = []string{"0A", "0B", "20", "21", "22", "23", "24", "25", "26", "28", "2B", "2D", "2F", "34", "38", "39", "3B", "3D", "3F", "40", "42", "44", "53", "54", "55", "P0"}

// meaning is what an error of the driver means.
func (l *Ledger) meaning(err error) storekit.Meaning {
	m := storekit.Meaning{NotStored: unsent(err)}
	if _, ok := errors.AsType[unreplicated](err); ok {
		return storekit.Meaning{Sound: true}
	}
	if why, all := allUnfit(err); all {
		return l.unfit(why)
	}
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return m
	}
	if isGuard(e) {
		return l.unfit(errStandby)
	}
	// FATAL and PANIC end the connection, also after a commit whose reply is then missing.
	m.NotStored = m.NotStored || e.SeverityUnlocalized != "FATAL" && e.SeverityUnlocalized != "PANIC" && !isFatal(e.Severity) && e.Code != codeStatementUnknown &&
		(len(e.Code) == 5 && slices.Contains(rolledBack, e.Code[:2]) || e.Code == codeCancelled)
	switch e.Code {
	case codeNoTable, codeNoSchema:
		m.Is, m.Sound = store.ErrMissing, false
	case codeNoDatabase:
		m.Is, m.Text = store.ErrMissing, fmt.Sprintf("there is no database %q on the server: create it", l.address.Database)
	case codeDenied:
		m.Is, m.Sound = store.ErrDenied, true
	case codeReadOnly:
		return l.unfit(storekit.Unfit{Why: "the server takes no writes: " + e.Message})
	case codeUnique, codeNotNull, codeForeignKey, codeCheck, codeExclusion:
		// The key's own conflict is no error.
		if m.NotStored {
			m.Is, m.Text = store.ErrRefused, l.constraint(e)
		}
	case codeNoKey, codeNoColumn, codeOtherType, codeWrongObject, codeFeature:
		if m.NotStored {
			m.Is = store.ErrRefused
		}
	case codeSerialization, codeDeadlock, codeCancelled:
		m.Sound = true
	case codeTooManyConns:
		m.Sound = true
		m.Text = e.Message + ": raise max_connections, or put a pooler in between"
	default:
		if strings.HasPrefix(e.Code, "28") {
			m.Is, m.Sound = store.ErrDenied, true
		}
	}
	return m
}

// unfit is the meaning of a server that takes no writes. As long as no other was seen, somebody has named the wrong
// one. Later it is a failover, which passes.
func (l *Ledger) unfit(why storekit.Unfit) storekit.Meaning {
	m := storekit.Meaning{NotStored: true, Text: why.Why}
	if l.known.Load() == nil {
		m.Is, m.Text = store.ErrRefused, why.Why+": name the primary, or all servers"
	}
	return m
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
