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
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// login is denied before a statement is sent, and full is for want of room for another connection.
var (
	login = storekit.Meaning{Is: store.ErrDenied, Sound: true}
	full  = storekit.Meaning{Sound: true}
)

// Errors that the code looks at.
const (
	codeNoDatabase      = 1049
	codeDuplicate       = 1062
	codeNoTable         = 1146
	codeLockWaitTimeout = 1205
	codeDeadlock        = 1213 // in Galera also a lost certification, after which the transaction is rolled back on all nodes
	codeOption          = 1290 // read_only and super_read_only among others
	codeOutOfRange      = 1690 // that of astray
	codeReadTransaction = 1792
	codeReadMode        = 1836
)

// meanings are those of error numbers:
// https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html and
// https://mariadb.com/kb/en/mariadb-error-code-reference/. What isn't here may come from a commit: 1180 that it failed, 1317 that the
// statement was interrupted, 1969 and 3024 that it took too long, 1927 that its connection was killed, 1053 that the server shuts
// down, 1021 and 1026 that a log can't be written.
var meanings = map[uint16]storekit.Meaning{
	codeNoDatabase: sqldb.Missing, codeDuplicate: sqldb.Refused, codeLockWaitTimeout: sqldb.Passing, codeDeadlock: sqldb.Passing,
	codeOption: sqldb.Undone, codeReadTransaction: sqldb.Undone, codeReadMode: sqldb.Undone,

	1040: full, 1203: full, 1226: full, // too many connections: of all, of a user, and by its limit
	1044: sqldb.Denied,                       // the database
	1045: login,                              // user or password
	1047: sqldb.Undone,                       // of Galera: the node isn't a part of the cluster
	1048: sqldb.Refused, 1364: sqldb.Refused, // a column that must not be null, or has no default
	1114: sqldb.Undone,                                         // of InnoDB, when there is no room for the row
	1130: login,                                                // from this host
	1142: sqldb.Denied, 1143: sqldb.Denied, 1227: sqldb.Denied, // the table, a column, a right
	codeNoTable: sqldb.Missing,
	1153:        sqldb.Undone,                       // a packet that is too large
	1216:        sqldb.Refused, 1452: sqldb.Refused, // foreign keys
	1366: sqldb.Refused, 1406: sqldb.Refused, // wrong and long values
	1644: sqldb.Refused,             // SIGNAL of a trigger
	1665: sqldb.Refused,             // the format of the binary log takes no writes at the level of isolation
	1698: login,                     // no password
	1820: sqldb.Denied, 1862: login, // the password has expired; the second before the session
	1906: sqldb.Refused, 3105: sqldb.Refused, // computed columns, of MariaDB and of MySQL
	3101: sqldb.Passing,      // the group's certification has rolled the transaction back
	3118: login, 4151: login, // the account is locked
	3819: sqldb.Refused, 4025: sqldb.Refused, // checks
}

// mistakes are the numbers of statements that the server can't parse, or that name what isn't there (columns, variables, functions, or
// tables of the statement), have too many columns, or collations that don't fit.
var mistakes = []uint16{1052, 1054, 1064, 1109, 1128, 1136, 1149, 1193, 1267, 1305, 1582}

// codeOf is the number of a server's error, or 0.
func codeOf(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
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
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return m
	}
	notStored := m.NotStored
	m = meanings[e.Number]
	if slices.Contains(mistakes, e.Number) || e.Number == codeNoTable && !strings.Contains(strings.ToLower(e.Message), strings.ToLower(l.address.Table)) {
		m = sqldb.Mistaken(e.Number, e.Message)
	}
	switch e.Number {
	case codeNoDatabase:
		m = l.core.NoDatabase()
		m.NotStored = true
	case codeDuplicate: // That of the key is no error by now.
		m.Text = l.duplicate(e)
	case codeLockWaitTimeout:
		m.Text = fmt.Sprintf("another transaction, or LOCK TABLES or ALTER TABLE, has held a lock on %s or a row of it for more than %s s: "+
			"SHOW FULL PROCESSLIST and information_schema.INNODB_TRX say whose (%s)", l.core.Name(), lockSeconds, e.Error())
	case 1040, 1203, 1226:
		m.Text = e.Message + ": raise max_connections in my.cnf, or the user's limit with ALTER USER"
	}
	m.NotStored = m.NotStored || notStored
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
	return fmt.Sprintf("table %s has a unique index besides its key, or a trigger that writes to such a table, which keeps records out: drop it (%s)",
		l.core.Name(), e.Message)
}
