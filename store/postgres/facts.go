package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// facts are what a server says about itself and the tables, at one moment.
type facts struct {
	Number     int    `json:"number"` // 150004 is version 15.4.
	Version    string `json:"version"`
	Standby    bool   `json:"standby"`
	ReadOnly   bool   `json:"readOnly"`
	Encoding   string `json:"encoding"`
	Collate    string `json:"collate"`
	Fsync      string `json:"fsync"`
	FullPages  string `json:"fullPages"`
	SyncNames  string `json:"syncNames"`
	SyncCommit string `json:"syncCommit"`
	// Standbys are connected; SyncStandbys of them are synchronous, or -1 if the user may not know.
	Standbys     int    `json:"standbys"`
	SyncStandbys int    `json:"syncStandbys"`
	Server       string `json:"server"`
	User         string `json:"user"`
	PID          uint32 `json:"pid"`
	Schema       bool   `json:"schema"`
	// Usage says that the user may use the schema, and Create that it may create tables there.
	Usage  bool      `json:"usage"`
	Create bool      `json:"create"`
	Ledger *relation `json:"ledger"`
	Roster *relation `json:"roster"`

	// pooled says that the connection's other end isn't the process that executes statements.
	pooled bool
}

// relation is a table, as the catalog has it.
type relation struct {
	Kind          string   `json:"kind"`
	Persistence   string   `json:"persistence"`
	RowSecurity   bool     `json:"rowSecurity"`
	Partition     bool     `json:"partition"`
	Triggers      []string `json:"triggers"`
	Rules         []string `json:"rules"`
	Constraints   []string `json:"constraints"`
	Children      []string `json:"children"`
	Parents       []string `json:"parents"`
	Subscriptions int      `json:"subscriptions"`
	Columns       []column `json:"columns"`
	Indexes       []index  `json:"indexes"`
	Select        bool     `json:"select"`
	Insert        bool     `json:"insert"`
	Update        bool     `json:"update"`
	Delete        bool     `json:"delete"`
}

type column struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	Collation string `json:"collation"`
	Required  bool   `json:"required"`
}

// index is one that keeps rows out.
type index struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
	Plain   bool     `json:"plain"` // valid, immediate, of all rows, of columns alone, and in byte order
}

// factsQuery asks for all of them. Every user may read these parts of the catalog.
var factsQuery = strings.NewReplacer("RELATION($2)", relationQuery("$2"), "RELATION($3)", relationQuery("$3"), "SERVER", serverName).Replace(`SELECT json_build_object(
	'number', current_setting('server_version_num')::int, 'version', version(),
	'standby', pg_is_in_recovery(), 'readOnly', current_setting('transaction_read_only') = 'on',
	'encoding', current_setting('server_encoding'), 'collate', (SELECT datcollate FROM pg_database WHERE datname = current_database()),
	'fsync', current_setting('fsync'), 'fullPages', current_setting('full_page_writes'),
	'syncNames', current_setting('synchronous_standby_names'), 'syncCommit', current_setting('synchronous_commit'),
	'standbys', (SELECT count(*) FROM pg_stat_replication r WHERE coalesce(r.state, 'streaming') IN ('streaming', 'catchup')
		AND NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')),
	'syncStandbys', (SELECT CASE WHEN count(*) = count(r.sync_state) THEN count(*) FILTER (WHERE r.sync_state IN ('sync', 'quorum')) ELSE -1 END FROM pg_stat_replication r),
	'server', SERVER, 'user', current_user, 'pid', pg_backend_pid(),
	'schema', EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
	'usage', coalesce((SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = $1), false),
	'create', coalesce((SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = $1), has_database_privilege(current_database(), 'CREATE')),
	'ledger', RELATION($2), 'roster', RELATION($3))::text`)

// relationQuery is the part about one table.
func relationQuery(name string) string {
	may := func(right string) string {
		// A right for each of our columns does as well.
		return fmt.Sprintf(`has_table_privilege(c.oid, '%[1]s') OR (SELECT bool_and(has_column_privilege(c.oid, a.attnum, '%[1]s')) FROM pg_attribute a
			WHERE a.attrelid = c.oid AND a.attname IN ('worker_type', 'seq', 'id', 'document'))`, right)
	}
	return `(SELECT json_build_object(
	'kind', c.relkind, 'persistence', c.relpersistence, 'rowSecurity', c.relrowsecurity, 'partition', c.relispartition,
	'triggers', (SELECT json_agg(t.tgname ORDER BY t.tgname) FROM pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D'),
	'rules', (SELECT json_agg(r.rulename ORDER BY r.rulename) FROM pg_rewrite r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN' AND r.ev_enabled <> 'D'),
	'constraints', (SELECT json_agg(k.conname ORDER BY k.conname) FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype IN ('c', 'f', 'x')),
	'children', (SELECT json_agg(i.inhrelid::regclass::text) FROM pg_inherits i WHERE i.inhparent = c.oid),
	'parents', (SELECT json_agg(i.inhparent::regclass::text) FROM pg_inherits i WHERE i.inhrelid = c.oid),
	'subscriptions', (SELECT count(*) FROM pg_subscription_rel s WHERE s.srrelid = c.oid),
	'columns', (SELECT json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, NULL), 'collation', coalesce(l.collname, ''),
		'required', a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''))
		FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
	'indexes', (SELECT json_agg(json_build_object('name', x.indexrelid::regclass::text,
		'columns', (SELECT json_agg(a.attname ORDER BY a.attname) FROM pg_attribute a WHERE a.attrelid = x.indexrelid),
		'plain', x.indisunique AND x.indisvalid AND x.indisready AND x.indimmediate AND x.indpred IS NULL AND x.indexprs IS NULL
			AND NOT EXISTS (SELECT FROM unnest(x.indcollation::oid[]) u JOIN pg_collation k ON k.oid = u WHERE k.collname NOT IN ('` + strings.Join(byteOrder, "', '") + `'))))
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
		return nil, l.statementMode(err)
	}
	defer func() { _ = tx.Rollback() }()
	var text string
	if err := tx.QueryRowContext(ctx, factsQuery, l.address.schema, l.address.table, l.address.table+rosterSuffix).Scan(&text); err != nil {
		return nil, l.statementMode(err)
	}
	var f facts
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return nil, fmt.Errorf("what the server says about its catalog can't be read: %w", err)
	}
	if err := tx.Rollback(); err != nil && !errors.Is(err, sql.ErrTxDone) {
		return nil, err
	}
	return &f, c.Raw(func(own any) error {
		f.pooled = own.(*conn).Conn.Conn().PgConn().PID() != f.PID
		return nil
	})
}
