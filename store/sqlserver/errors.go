//go:build sqlserver

package sqlserver

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// throttled is for want of room for another session.
var throttled = storekit.Meaning{Is: store.ErrThrottled, Sound: true}

// Errors that the code looks at.
const (
	codeNoObject      = 208 // no such table or view
	codeTriggered     = 334 // OUTPUT, and the table has triggers
	codeSecondary     = 976 // the database of an availability group, on a server that isn't its primary; also 978, 982 and 983
	codeReadIntent    = 978
	codeNotReadable   = 982
	codeNotAccessible = 983
	codeNoQuorum      = 988
	codeLockTimeout   = 1222
	codeUniqueIndex   = 2601
	codeUniqueKey     = 2627
	codeExists        = 2714
	codeReadOnly      = 3906
	codeNoDatabase    = 4060
	codeGuard         = 51700 // our own
)

// meanings are those of error numbers, with XACT_ABORT on: https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors,
// and of Azure SQL Database: https://learn.microsoft.com/azure/azure-sql/database/troubleshoot-common-errors-issues. What isn't here may
// come from the commit, such as 9002 (the log is full), 1105 (no room), 701 (no memory), 3980 and 3989 (the statement was interrupted),
// 40197 and 64 (the connection broke), or is fatal.
var meanings = map[int32]storekit.Meaning{
	codeSecondary: sqldb.Undone, codeReadIntent: sqldb.Undone, codeNotReadable: sqldb.Undone, codeNotAccessible: sqldb.Undone, codeNoQuorum: sqldb.Undone, codeReadOnly: sqldb.Undone,
	codeTriggered: sqldb.Refused, codeUniqueIndex: sqldb.Refused, codeUniqueKey: sqldb.Refused, codeLockTimeout: sqldb.Passing, codeNoDatabase: sqldb.Missing, codeGuard: sqldb.Undone,

	codeNoObject: sqldb.Missing,
	229:          sqldb.Denied, 230: sqldb.Denied, 262: sqldb.Denied, // the table, a column, what a database allows
	271: sqldb.Refused, 544: sqldb.Refused, // computed and identity columns
	515: sqldb.Refused, 547: sqldb.Refused, // null; a check or a foreign key
	916: sqldb.Denied,                    // the login has no user in the database
	922: sqldb.Undone, 942: sqldb.Undone, // not recovered, offline
	1205: sqldb.Passing,                      // a deadlock
	1934: sqldb.Refused,                      // settings of the session, for an indexed view or a computed column
	2628: sqldb.Refused, 8152: sqldb.Refused, // cut short
	2760: sqldb.Refused,                      // no schema
	3960: sqldb.Passing, 3961: sqldb.Passing, // the isolation level SNAPSHOT
	10928: throttled, 10929: throttled, 40501: throttled, // of Azure: workers or sessions
	18452: sqldb.Denied, 18456: sqldb.Denied, 18470: sqldb.Denied, 18486: sqldb.Denied, 18487: sqldb.Denied, 18488: sqldb.Denied, // the login, or its password
	33504: sqldb.Refused,                     // a row-level security policy, before or after the insert
	40532: sqldb.Denied, 40615: sqldb.Denied, // of Azure: the server, the firewall
}

// syntax is the severity ("class") of an error about a statement that the server can't parse. mistakes are of statements with names that
// it doesn't know (functions, columns, parts of names), or with too few columns.
const syntax = 15

var mistakes = []int32{195, 207, 209, 213, 4104, 4121}

// mistaken reports whether an error is that of a mistake in the statement or in the tables.
func (l *Ledger) mistaken(e mssql.Error) bool {
	return e.Class == syntax || slices.Contains(mistakes, e.Number) || e.Number == codeNoObject && !strings.Contains(e.Message, l.address.Table)
}

// mostSeverity is the highest severity ("class") of an error that leaves the session as it is. From 20 on the server
// closes it.
const mostSeverity = 16

// ofStatement is an error of the server about a statement alone, or false if the error, or one that came along with
// it, is another.
func ofStatement(err error) (mssql.Error, bool) {
	if _, fatal := errors.AsType[mssql.ServerError](err); fatal {
		return mssql.Error{}, false
	}
	if _, broken := errors.AsType[mssql.StreamError](err); broken {
		return mssql.Error{}, false
	}
	e, ok := errors.AsType[mssql.Error](err)
	return e, ok
}

// didNothing reports whether an error says that its statement did nothing.
func didNothing(e mssql.Error) bool {
	all := e.All
	if len(all) == 0 {
		all = []mssql.Error{e}
	}
	return !slices.ContainsFunc(all, func(one mssql.Error) bool {
		known := meanings[one.Number].NotStored || one.Class == syntax || slices.Contains(mistakes, one.Number)
		return !known || one.Class > mostSeverity
	})
}

// meaning is what an error of the driver means.
func (l *Ledger) meaning(err error) storekit.Meaning {
	m := storekit.Meaning{NotStored: errors.Is(err, driver.ErrBadConn) || errors.Is(err, store.ErrNotStored)}
	if why, all := storekit.AllUnfit(err); all {
		return l.core.Unfit(why)
	}
	if why, is := ofServer(err); is {
		return l.core.Unfit(why)
	}
	e, ok := ofStatement(err)
	if !ok {
		return m
	}
	number := e.Number
	if slices.ContainsFunc(e.All, func(one mssql.Error) bool { return one.Number == codeNoDatabase }) {
		number = codeNoDatabase // A failed login follows.
	}
	notStored := m.NotStored || didNothing(e)
	m = meanings[number]
	if l.mistaken(e) {
		m = sqldb.Mistaken(number, e.Message)
	}
	m.NotStored = notStored
	switch number {
	case codeNoDatabase:
		m.Text = fmt.Sprintf("there is no database %q on the server, or the user may not enter it: create it, or a user in it (%s)", l.address.Database, e.Message)
		m.Remedy = "create the database, or a user in it, or correct its name in the URI; Init creates tables only"
	case codeTriggered:
		m.Text = fmt.Sprintf("table %s has triggers, which can change records: drop them (%v)", l.core.Name(), err)
	case codeUniqueIndex, codeUniqueKey: // That of the key is no error by now.
		m.Text = fmt.Sprintf("table %s has a unique index besides its key, which keeps records out: drop it (%s)", l.core.Name(), e.Message)
	case codeLockTimeout:
		m.Text = fmt.Sprintf("another transaction has held a lock on table %s or a row of it for more than 2 s: sys.dm_tran_locks says whose (%s)", l.core.Name(), e.Message)
	}
	return m
}

// nameTheRightOne is what to do about a server that takes no writes.
const nameTheRightOne = "name the listener of the availability group, the primary, or all servers"

// ofServer is why a statement wasn't executed, if the server takes no writes or isn't that of the session.
func ofServer(err error) (why storekit.Unfit, is bool) {
	e, ok := ofStatement(err)
	if !ok || !didNothing(e) {
		return storekit.Unfit{}, false
	}
	switch e.Number {
	case codeGuard:
		return storekit.Unfit{Why: strings.TrimPrefix(e.Message, "slotlease: ")}, strings.HasPrefix(e.Message, "slotlease: ")
	case codeReadOnly, codeSecondary, codeReadIntent, codeNotReadable, codeNotAccessible, codeNoQuorum:
		return storekit.Unfit{Why: "the database takes no writes here: " + e.Message}, true
	}
	return storekit.Unfit{}, false
}

// isKey reports whether an error says that the key of the ledger's table is taken, and nothing else. The text of the
// error names the key's constraint and the table in quotes, in every language of the server; what else it quotes is the
// key, of which the bytes are shown in hexadecimal digits.
func (l *Ledger) isKey(err error) bool {
	e, ok := ofStatement(err)
	f := l.core.Known()
	if !ok || !didNothing(e) || len(e.All) > 1 || f == nil || f.table == nil || f.table.key == "" {
		return false
	}
	named := func(name string) bool { return strings.Contains(e.Message, "'"+name+"'") }
	return (e.Number == codeUniqueKey || e.Number == codeUniqueIndex) && named(f.table.key) && named(f.table.schema+"."+f.table.name)
}
