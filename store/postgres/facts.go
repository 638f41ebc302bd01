package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// facts are what a server says about itself and the tables, at one moment.
type facts struct {
	sqldb.Common

	Number     int // 150004 is version 15.4.
	Version    string
	Standby    bool
	ReadOnly   bool
	Encoding   string
	Fsync      string
	FullPages  string
	SyncNames  string
	SyncCommit string
	// Standbys are connected; SyncStandbys of them are synchronous, or -1 if the user may not know.
	Standbys     int
	SyncStandbys int
	PID          uint32
	HasSchema    bool
	// Usage says that the user may use the schema.
	Usage       bool
	LedgerTable *relation
	RosterTable *relation

	// pooled says that the connection's other end isn't the process that executes statements.
	pooled bool
}

// relation is a table, as the catalog has it.
type relation struct {
	sqldb.Relation

	Persistence                    string
	RowSecurity                    bool
	Partition                      bool
	Rules, Children, Parents       []string
	Subscriptions                  int
	Select, Insert, Update, Delete bool
}

// factsQuery asks for all of them. Every user may read these parts of the catalog.
var factsQuery = sync.OnceValue(func() string {
	return catalogued(strings.NewReplacer("RELATION($2)", relationQuery("$2"), "RELATION($3)", relationQuery("$3"), "SERVER", serverName).Replace(`SELECT json_build_object(
	'number', current_setting('server_version_num')::integer, 'version', version(),
	'standby', pg_is_in_recovery(), 'readOnly', current_setting('transaction_read_only') = 'on',
	'encoding', current_setting('server_encoding'),
	'fsync', current_setting('fsync'), 'fullPages', current_setting('full_page_writes'),
	'syncNames', current_setting('synchronous_standby_names'), 'syncCommit', current_setting('synchronous_commit'),
	'standbys', (SELECT count(*) FROM pg_stat_replication r WHERE (r.state IS NULL OR ` + isOneOf("r.state", "streaming", "catchup") + `)
		AND NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')),
	'syncStandbys', (SELECT CASE WHEN count(*) = count(r.sync_state) THEN count(*) FILTER (WHERE ` + isOneOf("r.sync_state", "sync", "quorum") + `) ELSE -1 END FROM pg_stat_replication r),
	'server', SERVER, 'user', CURRENT_USER, 'pid', pg_backend_pid(),
	'hasSchema', EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
	'usage', coalesce((SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1), false),
	'ledgerTable', RELATION($2), 'rosterTable', RELATION($3))::text`))
})

// relationQuery is the part about one table.
func relationQuery(name string) string {
	may := func(right string) string {
		// A right for each of our columns does as well.
		return fmt.Sprintf(`has_table_privilege(c.oid, '%[1]s') OR (SELECT bool_and(has_column_privilege(c.oid, a.attnum, '%[1]s')) FROM pg_attribute a
			WHERE a.attrelid = c.oid AND %[2]s)`, right, isOneOf("a.attname", "worker_type", "seq", "id", "document"))
	}
	return `(SELECT json_build_object(
	'kind', CASE WHEN c.relkind = 'r' THEN '' WHEN c.relkind = 'p' THEN 'partitioned table: a partition can be detached or dropped, and the newest record with it'
		WHEN c.relkind = 'v' THEN 'view' WHEN c.relkind = 'm' THEN 'materialized view' WHEN c.relkind = 'f' THEN 'foreign table' ELSE c.relkind::text END, 'persistence', c.relpersistence, 'rowSecurity', c.relrowsecurity, 'partition', c.relispartition,
	'triggers', (SELECT json_agg(t.tgname ORDER BY t.tgname) FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D'),
	'rules', (SELECT json_agg(r.rulename ORDER BY r.rulename) FROM pg_rewrite r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN' AND r.ev_enabled <> 'D'),
	'constraints', (SELECT json_agg(k.conname ORDER BY k.conname) FROM pg_constraint k WHERE k.conrelid = c.oid AND ` + isOneOf("k.contype", "c", "f", "x") + `),
	'children', (SELECT json_agg(i.inhrelid::regclass::text) FROM pg_inherits i WHERE i.inhparent = c.oid),
	'parents', (SELECT json_agg(i.inhparent::regclass::text) FROM pg_inherits i WHERE i.inhrelid = c.oid),
	'subscriptions', (SELECT count(*) FROM pg_subscription_rel s WHERE s.srrelid = c.oid),
	'columns', (SELECT json_agg(json_build_object('name', a.attname, 'type', (SELECT CASE WHEN m.nspname = 'pg_catalog' THEN '' ELSE m.nspname || '.' END || t.typname FROM pg_type t JOIN pg_namespace m ON m.oid = t.typnamespace
		WHERE t.oid = a.atttypid) || coalesce(' COLLATE ' || l.collname::text, ''),
		'required', a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''))
		FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
	'indexes', (SELECT json_agg(json_build_object('name', x.indexrelid::regclass::text,
		'key', (SELECT string_agg(a.attname::text, ',' ORDER BY a.attname) FROM pg_attribute a WHERE a.attrelid = x.indexrelid) = 'seq,worker_type' AND x.indisunique AND x.indisvalid AND x.indisready AND x.indimmediate AND x.indpred IS NULL AND x.indexprs IS NULL
			AND NOT EXISTS (SELECT FROM unnest(x.indcollation::oid[]) u JOIN pg_collation k ON k.oid = u WHERE NOT ` + isOneOf("k.collname", byteOrder...) + `)))
		FROM pg_index x WHERE x.indrelid = c.oid AND (x.indisunique OR x.indisexclusion)),
	'select', ` + may("SELECT") + `, 'insert', ` + may("INSERT") + `, 'update', ` + may("UPDATE") + `, 'delete', has_table_privilege(c.oid, 'DELETE'))
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = ` + name + `)`
}

// look asks the server for the facts. It does so in a transaction, which a pooler that gives each statement to
// another process doesn't allow.
func (l *Ledger) look(ctx context.Context) (*facts, error) {
	c, err := l.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return nil, statementMode(err)
	}
	defer func() { _ = tx.Rollback() }()
	var text string
	if err := tx.QueryRowContext(ctx, factsQuery(), l.address.Schema, l.address.Table, l.address.Table+sqldb.RosterSuffix).Scan(&text); err != nil {
		return nil, statementMode(err)
	}
	var f facts
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, fmt.Errorf("what the server says about its catalog can't be read: %w", err)
	}
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return nil, err
	}
	f.Process = process(f.Server)
	if f.LedgerTable != nil {
		f.Ledger = &f.LedgerTable.Relation
	}
	if f.RosterTable != nil {
		f.Roster = &f.RosterTable.Relation
	}
	return &f, c.Raw(func(own any) error {
		f.pooled = own.(*conn).Conn.Conn().PgConn().PID() != f.PID
		return nil
	})
}

// lookAtPrimary is look at a server that takes writes. That it is none any more the connection didn't know: it is a failover.
func (l *Ledger) lookAtPrimary(ctx context.Context) (*facts, error) {
	f, err := l.look(ctx)
	switch {
	case err != nil:
		return nil, err
	case f.Standby:
		return nil, storekit.ConnectError{Tried: []error{errStandby}}
	case f.ReadOnly:
		return nil, storekit.ConnectError{Tried: []error{errSessions}}
	}
	return f, nil
}
