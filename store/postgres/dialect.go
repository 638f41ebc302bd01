package postgres

import (
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// standbyText is what the guard makes of a standby: a text that is no number.
const standbyText = "slotlease: a standby answered"

// lockTimeout is how long a statement waits for a lock, in ms: then the server ends it, and nothing of it is stored.
const lockTimeout = "1000"

// Parts of the statements. Functions that change from row to row are never computed in advance, and a condition that
// depends on no row is checked before all else.
const (
	// clockNow is the server's clock, and serverName the process whose clock it is, and its timeline unless it is a standby.
	clockNow   = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
	serverName = `coalesce(host(inet_server_addr()) || ':' || inet_server_port()::text, 'local:' || current_setting('port')) || '` + sqldb.Since + `' || ` +
		`to_char(pg_postmaster_start_time() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ` +
		`CASE WHEN pg_is_in_recovery() THEN '' ELSE '` + onTimeline + `' || ltrim(substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), '0') END`
	onTimeline = ", timeline "
	// durable makes this transaction's commit wait for the disk and for the synchronous standbys, and lets the
	// server warn if it didn't, whatever the session's settings are.
	durable = `(SELECT set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') = 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)
		|| set_config('client_min_messages', 'warning', true) || set_config('lock_timeout', '` + lockTimeout + `', true)) IS NOT NULL`
	// hasty lets it wait for neither.
	hasty = `(SELECT set_config('synchronous_commit', 'off', true) || set_config('lock_timeout', '` + lockTimeout + `', true)) IS NOT NULL`
	// onPrimary is an error of the statement on a standby.
	onPrimary = `(SELECT CAST(CASE WHEN pg_is_in_recovery() THEN '` + standbyText + `' ELSE '1' END AS integer)) = 1`
	// replicated is the same. Besides, if there are synchronous standbys, the statement ends only when one of them
	// has all that it has seen: it writes a message into the log that the standbys get, and commits that.
	replicated = `(SELECT CAST(CASE WHEN pg_is_in_recovery() THEN '` + standbyText + `'
		WHEN current_setting('synchronous_standby_names') = '' THEN '1'
		WHEN set_config('synchronous_commit', 'on', true) || set_config('client_min_messages', 'warning', true) = '' THEN '0'
		WHEN pg_logical_emit_message(true, 'slotlease', '') IS NULL THEN '0'
		ELSE '1' END AS integer)) = 1`
)

// quoted is the name of a table.
func quoted(schema, table string) string { return `"` + schema + `"."` + table + `"` }

// dialect are the statements of the ledger's tables. Those who only read wait for no standby. What is executed in each slot, and
// whose plan depends on no argument, is noted in often.
func (l *Ledger) dialect(readOnly bool) sqldb.Dialect {
	of := func(text string) sqldb.Statement {
		seen := replicated
		if readOnly {
			seen = onPrimary
		}
		return sqldb.Statement{Text: catalogued(strings.NewReplacer(
			"LEDGER", quoted(l.address.Schema, l.address.Table),
			"ROSTER", quoted(l.address.Schema, l.address.Table+sqldb.RosterSuffix),
			"PRESENCE", fmt.Sprintf("CASE WHEN octet_length(document::text) <= %d THEN document::text END", storekit.MaxPresence),
			"DOCUMENT", fmt.Sprintf("CASE WHEN octet_length(document::text) <= %d THEN document::text END", storekit.MaxDocument),
			"MAXSEQ", fmt.Sprint(int64(store.MaxSeq)),
			"CLOCK", clockNow, "SERVER", serverName,
			"HASTY", hasty, "PRIMARY", onPrimary, "SEEN", seen,
		).Replace(text))}
	}
	// A server without statistics of the table, as after a restore, takes a range of Seqs with two bounds for a handful of
	// records, and would sort all of them to find the newest. So a range has one bound, and what is beyond the other, at
	// the range's far end, is left out of what was found.
	d := sqldb.Dialect{
		Get: of(`SELECT DOCUMENT FROM LEDGER WHERE worker_type = $1 AND seq = $2 AND SEEN`),
		Tail: of(`SELECT c.now, c.server, r.seq, r.text FROM (SELECT CLOCK AS now, SERVER AS server) c LEFT JOIN (
			SELECT seq, DOCUMENT AS text FROM (SELECT seq, document FROM LEDGER
				WHERE worker_type = $1 AND seq <= MAXSEQ ORDER BY seq DESC LIMIT $2) newest WHERE seq >= 1
			UNION ALL (SELECT seq, NULL FROM LEDGER WHERE worker_type = $1 AND seq > MAXSEQ ORDER BY seq LIMIT 1)) r ON true WHERE SEEN`),
		Page: of(`SELECT seq, DOCUMENT FROM (SELECT seq, document FROM LEDGER
			WHERE worker_type = $1 AND seq > $2 AND SEEN ORDER BY seq LIMIT $3) oldest WHERE seq <= MAXSEQ ORDER BY seq`),
		Trim: of(`DELETE FROM LEDGER WHERE worker_type = $1 AND seq = ANY (SELECT seq FROM LEDGER WHERE worker_type = $1 AND seq < $2
			AND seq < (SELECT max(seq) FROM LEDGER WHERE worker_type = $1 AND seq >= 1 AND seq <= MAXSEQ) ORDER BY seq LIMIT $3) AND HASTY`),
		// Each name leads to the next one, so that the records between them aren't read.
		WorkerTypes: of(`WITH RECURSIVE found AS ((SELECT worker_type FROM LEDGER WHERE SEEN ORDER BY worker_type LIMIT 1)
			UNION ALL SELECT (SELECT t.worker_type FROM LEDGER t WHERE t.worker_type > found.worker_type ORDER BY t.worker_type LIMIT 1)
			FROM found WHERE found.worker_type IS NOT NULL) SELECT worker_type FROM found WHERE worker_type IS NOT NULL`),
		Now: of(`SELECT CLOCK, SERVER WHERE PRIMARY`),
		Attend: of(`INSERT INTO ROSTER (worker_type, id, document) SELECT $1, $2, $3::text::json WHERE HASTY
			ON CONFLICT (worker_type, id) DO UPDATE SET document=excluded.document`),
		Leave:     of(`DELETE FROM ROSTER WHERE worker_type = $1 AND id = $2 AND HASTY`),
		Presences: of(`SELECT worker_type, id, PRESENCE FROM ROSTER WHERE ($1 = '' OR worker_type = $1) AND PRIMARY`),
	}
	for _, s := range []sqldb.Statement{d.Get, d.Tail, d.Now, d.Attend} {
		l.often[s.Text] = true
	}
	return d
}
