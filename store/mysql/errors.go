package mysql

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Error numbers of the servers:
// https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html and
// https://mariadb.com/kb/en/mariadb-error-code-reference/. Where the two differ, one of them is named.
const (
	codeTooManyConns    = 1040 // also 1203 and 1226, for one user
	codeDatabaseDenied  = 1044
	codeDenied          = 1045 // user or password
	codeNullColumn      = 1048
	codeNoDatabase      = 1049
	codeNotReady        = 1047 // of Galera: the node isn't a part of the cluster
	codeNoColumn        = 1054
	codeDuplicate       = 1062
	codeFull            = 1114 // of InnoDB, when there is no room for the row
	codeHostDenied      = 1130
	codeTooManyColumns  = 1136
	codeTableDenied     = 1142
	codeColumnDenied    = 1143
	codeNoTable         = 1146
	codePacketTooLarge  = 1153
	codeLockWaitTimeout = 1205
	codeDeadlock        = 1213 // in Galera also a lost certification, after which the transaction is rolled back on all nodes
	codeForeignKey      = 1216 // and 1452
	codeRightDenied     = 1227
	codeOption          = 1290 // read_only and super_read_only among others
	codeNoDefault       = 1364
	codeWrongValue      = 1366
	codeDataTooLong     = 1406
	codeForeignKeyNow   = 1452
	codeSignal          = 1644 // SIGNAL of a trigger
	codeRowLogs         = 1665 // the format of the binary log takes no writes at the level of isolation
	codeOutOfRange      = 1690 // that of astray
	codeNoPassword      = 1698
	codeReadTransaction = 1792
	codeReadMode        = 1836
	codeTooManyOfUser   = 1203
	codeUserLimit       = 1226
	codePasswordExpired = 1820 // and 1862, before the session
	codeLoginExpired    = 1862
	codeCheckMySQL      = 3819
	codeGenerated       = 3105
	codeGeneratedMaria  = 1906
	codeLockedMySQL     = 3118
	codeLockedMaria     = 4151
	codeCheckMaria      = 4025
	codeGroupRolledBack = 3101 // the group's certification has rolled the transaction back
)

// rolledBack are the errors with which a server ends a statement that did nothing. Errors of others may come from a
// commit: 1180 that it failed, 1317 that the statement was interrupted, 1969 and 3024 that it took too long, 1927 that
// its connection was killed, 1053 that the server shuts down, 1021 and 1026 that a log can't be written.
var rolledBack = []uint16{
	codeDatabaseDenied, codeNullColumn, codeNoDatabase, codeNotReady, codeNoColumn, codeDuplicate, codeFull, codeTooManyColumns, codeTableDenied,
	codeColumnDenied, codeNoTable, codePacketTooLarge, codeLockWaitTimeout, codeDeadlock, codeForeignKey, codeRightDenied, codeOption, codeNoDefault,
	codeWrongValue, codeDataTooLong, codeForeignKeyNow, codeSignal, codeRowLogs, codeReadTransaction, codeReadMode, codePasswordExpired, codeCheckMySQL,
	codeGenerated, codeGeneratedMaria, codeCheckMaria, codeGroupRolledBack,
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
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return m
	}
	m.NotStored = m.NotStored || slices.Contains(rolledBack, e.Number)
	switch e.Number {
	case codeNoTable:
		m.Is = store.ErrMissing
	case codeNoDatabase:
		m.Is, m.Text = store.ErrMissing, fmt.Sprintf("there is no database %q on the server: create it", l.address.Database)
	case codeDatabaseDenied, codeDenied, codeHostDenied, codeTableDenied, codeColumnDenied, codeRightDenied, codeNoPassword, codePasswordExpired,
		codeLoginExpired, codeLockedMySQL, codeLockedMaria:
		m.Is, m.Sound = store.ErrDenied, true
	case codeDuplicate:
		// That of the key is no error by now.
		m.Is, m.Text = store.ErrRefused, l.duplicate(e)
	case codeNullColumn, codeNoColumn, codeTooManyColumns, codeForeignKey, codeForeignKeyNow, codeNoDefault, codeWrongValue, codeDataTooLong,
		codeSignal, codeRowLogs, codeCheckMySQL, codeCheckMaria, codeGenerated, codeGeneratedMaria:
		m.Is = store.ErrRefused
	case codeLockWaitTimeout, codeDeadlock, codeGroupRolledBack:
		m.Sound = true
	case codeTooManyConns, codeTooManyOfUser, codeUserLimit:
		m.Sound = true
		m.Text = e.Message + ": raise max_connections or the user's limit"
	}
	return m
}

// unfit is the meaning of a server that takes no writes, or isn't that of the session. As long as no other was seen,
// somebody has named the wrong one. Later it is a failover, which passes.
func (l *Ledger) unfit(why storekit.Unfit) storekit.Meaning {
	m := storekit.Meaning{NotStored: true, Text: why.Why}
	if l.known.Load() == nil {
		m.Is, m.Text = store.ErrRefused, why.Why+": "+nameTheRightOne
	}
	return m
}

// nameTheRightOne is what to do about a server that takes no writes.
const nameTheRightOne = "name the server that takes writes, or all servers"

// ofServer is why a statement wasn't executed where it was to be, by its error.
func ofServer(err error) (why storekit.Unfit, is bool) {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return storekit.Unfit{}, false
	}
	switch {
	case e.Number == codeOutOfRange && strings.Contains(e.Message, strings.TrimPrefix(sessionServer, "@")):
		return errAstray, true
	case e.Number == codeOption && strings.Contains(e.Message, "read"), e.Number == codeReadMode, e.Number == codeReadTransaction:
		return storekit.Unfit{Why: "the server takes no writes: " + e.Message}, true
	}
	return storekit.Unfit{}, false
}

// errAstray is the error of a statement that ran elsewhere than on the server of its session.
var errAstray = storekit.Unfit{Why: "the server that answered takes no writes any more, or isn't the one that does: a proxy sends reads to another server, or gives the session to others"}

// keyName is the end of the message about a key that is taken. The messages are in English: see settings. MySQL names
// the table, too.
var keyName = regexp.MustCompile(`for key '([^']+)'$`)

// isKey reports whether an error says that the primary key of a table is taken. No other index can have its name, but
// an index of another table, which a trigger writes to.
func isKey(err error, table string) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok || e.Number != codeDuplicate {
		return false
	}
	name := keyName.FindStringSubmatch(e.Message)
	return name != nil && (name[1] == "PRIMARY" || strings.EqualFold(name[1], table+".PRIMARY"))
}

// duplicate says which index kept a row out.
func (l *Ledger) duplicate(e *mysql.MySQLError) string {
	return fmt.Sprintf("table %s.%s has a unique index besides its key, or a trigger that writes to such a table, which keeps records out: drop it (%s)",
		l.address.Database, l.address.table, e.Message)
}
