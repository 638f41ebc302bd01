package mysql

import (
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// Parts of the statements.
const (
	// clockNow is the server's clock as it is then, in µs, whatever the session's time zone: SYSDATE isn't the
	// statement's start, unless the server was started with sysdate-is-now.
	clockNow = `(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) + TIMESTAMPDIFF(MICROSECOND, NOW(6), UTC_TIMESTAMP(6)))`
	// identity is that of the server that executes the statement. Servers that replicate have different ids.
	identity = `CONCAT(@@global.hostname, ':', @@global.port, ' #', @@global.server_id)`
	// The session's variables: the identity of the server that it was set up on, and the name of its clock.
	sessionServer = `@slotlease_server`
	sessionClock  = `@slotlease_clock`
	// astray is an error of the statement, unless it runs on the session's server, which takes writes. It is a part of
	// each read that has no rows: a proxy may send any statement to a replica, or to a session that isn't set up.
	astray = checked + ` = 0`
	// below compares a row with the claim, the kind and the instance of a record, byte by byte. What isn't JSON has none.
	below = `(CASE WHEN JSON_VALID(document) THEN CAST(JSON_UNQUOTE(JSON_EXTRACT(document, '$.claim')) AS BINARY) = CAST(? AS BINARY)
		AND CAST(JSON_UNQUOTE(JSON_EXTRACT(document, '$.kind')) AS BINARY) = CAST(? AS BINARY)
		AND CAST(JSON_UNQUOTE(JSON_EXTRACT(document, '$.instanceId')) AS BINARY) = CAST(? AS BINARY) END)`
	// checked is the largest number, or that error.
	checked = unbounded + ` + IF(` + sessionServer + ` = ` + identity +
		` AND CONCAT(@@global.read_only) IN ('0', 'OFF') AND CONCAT(@@global.innodb_read_only) IN ('0', 'OFF'), 0, 1)`
)

// quoted is the name of a table.
func quoted(database, table string) string { return "`" + database + "`.`" + table + "`" }

// filled is a statement with its parts.
func (l *Ledger) filled(text string) string {
	return strings.NewReplacer(
		"LEDGER", quoted(l.address.Database, l.address.Table),
		"ROSTER", quoted(l.address.Database, l.address.Table+sqldb.RosterSuffix),
		"PRESENCE", fmt.Sprintf("CASE WHEN OCTET_LENGTH(document) <= %d THEN document END", storekit.MaxPresence),
		"DOCUMENT", fmt.Sprintf("CASE WHEN OCTET_LENGTH(document) <= %d THEN document END", storekit.MaxDocument),
		"MAXSEQ", fmt.Sprint(int64(store.MaxSeq)),
		"CLOCK", clockNow, "SERVER", sessionClock, "ASTRAY", astray, "CHECKED", checked, "BELOW", below,
	).Replace(text)
}

// dialect are the statements of the ledger's tables. Reads lock nothing: a commit that waits keeps nobody from seeing
// what was committed before.
func (l *Ledger) dialect() sqldb.Dialect {
	of := func(text string, args ...int) sqldb.Statement {
		return sqldb.Statement{Text: l.filled(text), Args: args}
	}
	return sqldb.Dialect{
		Get: of(`SELECT DOCUMENT FROM LEDGER WHERE worker_type = ? AND seq = ? UNION ALL SELECT NULL FROM DUAL WHERE ASTRAY`),
		Tail: of(`(SELECT CLOCK, SERVER, seq, DOCUMENT FROM LEDGER WHERE worker_type = ? AND seq BETWEEN 1 AND MAXSEQ ORDER BY seq DESC LIMIT ?)
			UNION ALL (SELECT CLOCK, SERVER, seq, NULL FROM LEDGER WHERE worker_type = ? AND seq > MAXSEQ ORDER BY seq LIMIT 1)
			UNION ALL SELECT CLOCK, SERVER, NULL, NULL FROM DUAL UNION ALL SELECT NULL, NULL, NULL, NULL FROM DUAL WHERE ASTRAY`, 0, 1, 0),
		Page: of(`(SELECT seq, DOCUMENT FROM LEDGER WHERE worker_type = ? AND seq > ? AND seq <= MAXSEQ ORDER BY seq LIMIT ?)
			UNION ALL SELECT NULL, NULL FROM DUAL WHERE ASTRAY`),
		// The order is that of the key, whole: by a part of it, the server sorts all old rows.
		Trim: of(`DELETE FROM LEDGER WHERE worker_type = ? AND seq < ? AND seq < (SELECT newest FROM
			(SELECT MAX(seq) AS newest FROM LEDGER WHERE worker_type = ? AND seq BETWEEN 1 AND MAXSEQ) AS head) ORDER BY worker_type, seq LIMIT ?`, 0, 1, 0, 2),
		WorkerTypes: of(`SELECT DISTINCT worker_type FROM LEDGER UNION ALL SELECT NULL FROM DUAL WHERE ASTRAY`),
		Now:         of(`SELECT CLOCK, SERVER FROM DUAL UNION ALL SELECT NULL, NULL FROM DUAL WHERE ASTRAY`),
		Attend:      of(`INSERT INTO ROSTER (worker_type, id, document) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE document = ?`, 0, 1, 2, 2),
		Leave:       of(`DELETE FROM ROSTER WHERE worker_type = ? AND id = ?`),
		Presences: of(`SELECT worker_type, id, PRESENCE FROM ROSTER WHERE ? = '' OR worker_type = ?
			UNION ALL SELECT NULL, NULL, NULL FROM DUAL WHERE ASTRAY`, 0, 0),
	}
}
