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
	"github.com/slotlease/slotlease/store/storekit"
)

// Error numbers of the server: https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors,
// and those of Azure SQL Database: https://learn.microsoft.com/azure/azure-sql/database/troubleshoot-common-errors-issues
const (
	codeNoColumn       = 207
	codeNoObject       = 208
	codeColumnCount    = 213
	codeComputed       = 271
	codeDenied         = 229
	codeColumnDenied   = 230
	codeDatabaseDenied = 262 // CREATE TABLE among others
	codeNoUser         = 916 // the login has no user in the database
	codeTriggered      = 334 // OUTPUT, and the table has triggers
	codeNull           = 515
	codeIdentity       = 544
	codeConstraint     = 547 // a check or a foreign key
	codeNotRecovered   = 922
	codeOffline        = 942
	codeSecondary      = 976 // the database of an availability group, on a server that isn't its primary; also 978, 982 and 983
	codeReadIntent     = 978
	codeNotReadable    = 982
	codeNotAccessible  = 983
	codeNoQuorum       = 988
	codeDeadlock       = 1205
	codeLockTimeout    = 1222
	codeSettings       = 1934 // of the session, for an indexed view or a computed column
	codeUniqueIndex    = 2601
	codeUniqueKey      = 2627
	codeTruncated      = 2628
	codeNoSchema       = 2760
	codeExists         = 2714
	codeReadOnly       = 3906
	codeSnapshot       = 3960 // and 3961: the isolation level SNAPSHOT
	codeSnapshotDDL    = 3961
	codeNoDatabase     = 4060
	codeCutShort       = 8152
	codeLimit          = 10928 // of Azure: workers or sessions; 10929 and 40501 likewise
	codeLimitMinimum   = 10929
	codeLogin          = 18456
	codeLoginDisabled  = 18470
	codeLoginLocked    = 18486
	codeExpired        = 18487 // the password; 18488 if it must be changed
	codeMustChange     = 18488
	codeLoginUntrusted = 18452
	codeHidden         = 33504 // a row-level security policy, before or after the insert
	codeBusy           = 40501
	codeUnavailable    = 40613 // of Azure: the database, for a while
	codeFirewall       = 40615
	codeServerDenied   = 40532
	codeGuard          = 51700 // our own
)

// rolledBack are the errors with which a server ends a statement that did nothing: XACT_ABORT is on, so that each rolls
// its transaction back. Others may come from the commit, such as 9002 (the log is full), 1105 (no room), 701 (no memory),
// 3980 and 3989 (the statement was interrupted), 40197 and 64 (the connection broke), or are fatal.
var rolledBack = []int32{
	codeNoColumn, codeNoObject, codeColumnCount, codeComputed, codeDenied, codeColumnDenied, codeDatabaseDenied, codeNoUser, codeTriggered, codeNull, codeIdentity,
	codeConstraint, codeNotRecovered, codeOffline, codeSecondary, codeReadIntent, codeNotReadable, codeNotAccessible, codeNoQuorum, codeDeadlock, codeLockTimeout, codeSettings,
	codeUniqueIndex, codeUniqueKey, codeTruncated, codeNoSchema, codeReadOnly, codeSnapshot, codeSnapshotDDL, codeNoDatabase, codeCutShort, codeLogin,
	codeLoginDisabled, codeLoginLocked, codeExpired, codeMustChange, codeLoginUntrusted, codeHidden, codeFirewall, codeServerDenied, codeGuard,
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

// undone reports whether an error says that its statement did nothing.
func undone(e mssql.Error) bool {
	all := e.All
	if len(all) == 0 {
		all = []mssql.Error{e}
	}
	return !slices.ContainsFunc(all, func(one mssql.Error) bool {
		return !slices.Contains(rolledBack, one.Number) || one.Class > mostSeverity
	})
}

// meaning is what an error of the driver means.
func (l *Ledger) meaning(err error) storekit.Meaning {
	m := storekit.Meaning{NotStored: errors.Is(err, driver.ErrBadConn) || errors.Is(err, store.ErrNotStored)}
	if why, all := storekit.AllUnfit(err); all {
		return l.unfit(why)
	}
	if why, is := ofServer(err); is {
		return l.unfit(why)
	}
	e, ok := ofStatement(err)
	if !ok {
		return m
	}
	m.NotStored = m.NotStored || undone(e)
	number := e.Number
	if slices.ContainsFunc(e.All, func(one mssql.Error) bool { return one.Number == codeNoDatabase }) {
		number = codeNoDatabase // A failed login follows.
	}
	switch number {
	case codeNoObject:
		m.Is = store.ErrMissing
	case codeNoDatabase:
		m.Is, m.Text = store.ErrMissing, fmt.Sprintf("there is no database %q on the server, or the user may not enter it: create it, or a user in it (%s)", l.address.Database, e.Message)
	case codeDenied, codeColumnDenied, codeDatabaseDenied, codeNoUser, codeLogin, codeLoginDisabled, codeLoginLocked, codeExpired, codeMustChange,
		codeLoginUntrusted, codeFirewall, codeServerDenied:
		m.Is, m.Sound = store.ErrDenied, true
	case codeTriggered:
		m.Is, m.Text = store.ErrRefused, fmt.Sprintf("table %s has triggers, which can change records: drop them (%s)", l.address.name(), e.Message)
	case codeUniqueIndex, codeUniqueKey:
		// That of the key is no error by now.
		m.Is, m.Text = store.ErrRefused, fmt.Sprintf("table %s has a unique index besides its key, which keeps records out: drop it (%s)", l.address.name(), e.Message)
	case codeNoColumn, codeColumnCount, codeComputed, codeNull, codeIdentity, codeConstraint, codeSettings, codeTruncated, codeNoSchema, codeCutShort, codeHidden:
		m.Is = store.ErrRefused
	case codeDeadlock, codeLockTimeout, codeSnapshot, codeSnapshotDDL:
		m.Sound = true
	case codeLimit, codeLimitMinimum, codeBusy:
		m.Is, m.Sound = store.ErrThrottled, true
	}
	return m
}

// unfit is the meaning of a server that takes no writes. As long as no other was seen, somebody has named the wrong one.
// Later it is a failover, which passes.
func (l *Ledger) unfit(why storekit.Unfit) storekit.Meaning {
	m := storekit.Meaning{NotStored: true, Text: why.Why}
	if l.known.Load() == nil {
		m.Is, m.Text = store.ErrRefused, why.Why+": "+nameTheRightOne
	}
	return m
}

// nameTheRightOne is what to do about a server that takes no writes.
const nameTheRightOne = "name the listener of the availability group, the primary, or all servers"

// ofServer is why a statement wasn't executed, if the server takes no writes or isn't that of the session.
func ofServer(err error) (why storekit.Unfit, is bool) {
	e, ok := ofStatement(err)
	if !ok || !undone(e) {
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
	f := l.known.Load()
	if !ok || !undone(e) || len(e.All) > 1 || f == nil || f.ledger == nil || f.ledger.key == "" {
		return false
	}
	named := func(name string) bool { return strings.Contains(e.Message, "'"+name+"'") }
	return (e.Number == codeUniqueKey || e.Number == codeUniqueIndex) && named(f.ledger.key) && named(f.ledger.schema+"."+f.ledger.name)
}
