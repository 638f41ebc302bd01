//go:build sqlserver

package sqlserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// facts are what a server says about itself, the database and the tables, at one moment.
type facts struct {
	sqldb.Common

	// values are settings by name. Those that the server doesn't have, or doesn't show to the user, are empty.
	values map[string]string
	// copies are the replicas of the database's availability group; none if there is no group, or the user may not know.
	copies []replica
	// table is that of the records, nil if the user knows of none.
	table *relation
}

// replica is one of the servers of an availability group.
type replica struct{ name, availability, failover string }

// relation is a table, as the catalog has it.
type relation struct {
	sqldb.Relation

	schema, name string
	// kinds are what the table is besides: memory-optimized, external, a file table.
	kinds string
	// key is the name of the primary key, which is that of its index; empty if there is none. It may drop duplicates without an
	// error, or be disabled.
	key             string
	ignores, keyOff bool
	// policies are those that are enabled.
	policies []string
}

// The values of facts.
const (
	valueEdition     = "EngineEdition"
	valueVersion     = "ProductVersion"
	valueBanner      = "version"
	valueUser        = "user"
	valueDatabase    = "database"
	valueUpdate      = "Updateability"
	valueDelayed     = "delayed_durability"
	valueSnapshot    = "is_read_committed_snapshot_on"
	valuePageVerify  = "page_verify_option"
	valueGroup       = "group_database_id"
	valueGroupCommit = "required_synchronized_secondaries_to_commit"
	valueClustered   = "IsClustered"
)

// The statements that ask for facts. Nobody needs VIEW SERVER STATE for them: the row of the own database in
// sys.databases is shown to everybody in it, and what else isn't shown is missing.
const (
	askServer = `SELECT CONVERT(nvarchar(128), SERVERPROPERTY('EngineEdition')) AS edition, CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion')) AS version,
	LEFT(@@VERSION, 300) AS banner, SUSER_SNAME() AS login_name, DB_NAME() AS database_name, CONVERT(nvarchar(60), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')) AS updateability,
	CONVERT(nvarchar(1), SERVERPROPERTY('IsClustered')) AS is_clustered, CONVERT(nvarchar(300), SESSION_CONTEXT(N'` + sessionServer + `')) AS server_name;`
	askDatabase = `SELECT delayed_durability_desc, CONVERT(nvarchar(1), is_read_committed_snapshot_on), page_verify_option_desc, CONVERT(nvarchar(36), group_database_id)
FROM sys.databases WHERE name = DB_NAME();`
	askGroup = `SELECT r.replica_server_name, r.availability_mode_desc, r.failover_mode_desc, COMMITS
FROM sys.availability_databases_cluster AS d JOIN sys.availability_groups AS g ON g.group_id = d.group_id JOIN sys.availability_replicas AS r ON r.group_id = d.group_id
WHERE d.group_database_id = CONVERT(uniqueidentifier, '%s');`
	askTable = `SELECT OBJECT_SCHEMA_NAME(o.object_id), o.name, o.type_desc,
	CASE WHEN t.is_memory_optimized = 1 THEN N' memory-optimized' ELSE N'' END + CASE WHEN t.is_external = 1 THEN N' external' ELSE N'' END + CASE WHEN t.is_filetable = 1 THEN N' file' ELSE N'' END
FROM sys.objects AS o LEFT JOIN sys.tables AS t ON t.object_id = o.object_id WHERE o.object_id = OBJECT_ID(N'TABLE');`
	askColumns = `SELECT c.name, COALESCE(TYPE_NAME(c.system_type_id), N'another'), CONVERT(nvarchar(10), c.max_length),
	CASE WHEN c.is_computed = 1 THEN N' computed' ELSE N'' END + CASE WHEN c.is_identity = 1 THEN N' identity' ELSE N'' END
	+ CASE WHEN c.is_masked = 1 THEN N' masked' ELSE N'' END + CASE WHEN c.encryption_type IS NOT NULL THEN N' encrypted' ELSE N'' END,
	CASE WHEN c.is_nullable = 0 AND c.default_object_id = 0 AND c.is_computed = 0 AND c.is_identity = 0 AND c.generated_always_type = 0 AND c.system_type_id <> 189 THEN N'1' ELSE N'0' END
FROM sys.columns AS c WHERE c.object_id = OBJECT_ID(N'TABLE') ORDER BY c.column_id;`
	askIndexes = `SELECT i.name, CONVERT(nvarchar(1), i.is_primary_key), CONVERT(nvarchar(1), i.ignore_dup_key), CONVERT(nvarchar(1), i.is_disabled), COL_NAME(k.object_id, k.column_id)
FROM sys.indexes AS i JOIN sys.index_columns AS k ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.key_ordinal > 0
WHERE i.object_id = OBJECT_ID(N'TABLE') AND i.is_unique = 1 ORDER BY i.index_id, k.key_ordinal;`
	askHooks = `SELECT N'trigger', name FROM sys.triggers WHERE parent_id = OBJECT_ID(N'TABLE') AND is_disabled = 0
UNION ALL SELECT N'constraint', name FROM sys.check_constraints WHERE parent_object_id = OBJECT_ID(N'TABLE') AND is_disabled = 0
UNION ALL SELECT N'constraint', name FROM sys.foreign_keys WHERE parent_object_id = OBJECT_ID(N'TABLE') AND is_disabled = 0
UNION ALL SELECT N'policy', p.name FROM sys.security_policies AS p JOIN sys.security_predicates AS s ON s.object_id = p.object_id WHERE s.target_object_id = OBJECT_ID(N'TABLE') AND p.is_enabled = 1
ORDER BY 1, 2;`
	askAbsent = `SELECT TOP (0) seq FROM LEDGER;`
)

// of is a statement about a table.
func (l *Ledger) of(text, table string) string {
	return strings.ReplaceAll(text, "TABLE", quoted(l.address.Schema, table))
}

// look asks the server for the facts.
func (l *Ledger) look(ctx context.Context) (f *facts, err error) {
	err = sqldb.On(ctx, l.db, func(c *conn) error {
		f, err = l.lookOn(ctx, c.all)
		return err
	})
	return f, err
}

// ask gives the rows of a statement as texts.
func (l *Ledger) ask(ctx context.Context, text string) (found [][]string, err error) {
	err = sqldb.On(ctx, l.db, func(c *conn) error {
		found, err = c.all(ctx, text)
		return err
	})
	return found, err
}

// asking gives the rows of a statement as texts.
type asking func(ctx context.Context, text string) ([][]string, error)

func (l *Ledger) lookOn(ctx context.Context, ask asking) (*facts, error) {
	f := &facts{values: map[string]string{}}
	take := func(text string, names ...string) error {
		found, err := ask(ctx, text)
		if err == nil && (len(found) != 1 || len(found[0]) != len(names)) {
			err = errors.New("the server doesn't say what it is, or hides the database in sys.databases")
		}
		if err != nil {
			return err
		}
		for i, name := range names {
			f.values[name] = found[0][i]
		}
		return nil
	}
	if err := take(askServer, valueEdition, valueVersion, valueBanner, valueUser, valueDatabase, valueUpdate, valueClustered, "server"); err != nil {
		return nil, err
	}
	f.Server, f.User = f.values["server"], f.values[valueUser]
	if err := take(askDatabase, valueDelayed, valueSnapshot, valuePageVerify, valueGroup); err != nil {
		return nil, err
	}
	if err := l.lookAtGroup(ctx, ask, f); err != nil {
		return nil, err
	}
	var err error
	if f.table, err = l.relation(ctx, ask, l.address.Table); err != nil {
		return nil, err
	}
	roster, err := l.relation(ctx, ask, l.address.Table+sqldb.RosterSuffix)
	if f.table != nil {
		f.Ledger = &f.table.Relation
	}
	if roster != nil {
		f.Roster = &roster.Relation
	}
	return f, err
}

// lookAtGroup asks for the replicas of the database's availability group. What the user may not know is left open.
func (l *Ledger) lookAtGroup(ctx context.Context, ask asking, f *facts) error {
	id := f.values[valueGroup]
	if id == "" || f.azure() || !isGUID(id) {
		return nil
	}
	found, err := ask(ctx, f.askGroup(id))
	if e, said := ofStatement(err); said && !l.mistaken(e) {
		return nil // denied
	}
	if err != nil {
		return err
	}
	for _, row := range found {
		f.copies = append(f.copies, replica{row[0], row[1], row[2]})
		f.values[valueGroupCommit] = row[3]
	}
	return nil
}

// askGroup asks for the replicas of a database's group. SQL Server 2016 has no setting of how many must commit: there the
// primary always goes on alone.
func (f *facts) askGroup(id string) string {
	commits := "CONVERT(nvarchar(10), g.required_synchronized_secondaries_to_commit)"
	if !f.hosted() && f.version() == oldestVersion {
		commits = "N'0'"
	}
	return strings.NewReplacer("COMMITS", commits, "%s", id).Replace(askGroup)
}

// isGUID reports whether a text may stand in a statement as one.
func isGUID(text string) bool {
	return len(text) == 36 && strings.Trim(text, "0123456789abcdefABCDEF-") == ""
}

// relation asks for a table; nil if the user knows of none.
func (l *Ledger) relation(ctx context.Context, ask asking, table string) (*relation, error) {
	found, err := ask(ctx, l.of(askTable, table))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	r := &relation{schema: found[0][0], name: found[0][1], kinds: strings.TrimSpace(found[0][3])}
	if kind := found[0][2]; kind != "USER_TABLE" {
		r.Kind = strings.ToLower(strings.ReplaceAll(kind, "_", " "))
	}
	if found, err = ask(ctx, l.of(askColumns, table)); err != nil {
		return nil, err
	}
	for _, row := range found {
		r.Columns = append(r.Columns, columnOf(row))
	}
	if found, err = ask(ctx, l.of(askIndexes, table)); err != nil {
		return nil, err
	}
	r.index(found)
	if found, err = ask(ctx, l.of(askHooks, table)); err != nil {
		return nil, err
	}
	for _, row := range found {
		to := map[string]*[]string{"trigger": &r.Triggers, "constraint": &r.Constraints, "policy": &r.policies}[row[0]]
		*to = append(*to, row[1])
	}
	return r, nil
}

// columnOf is a column: its name, type, length in bytes (-1 for max), what is special about it, and whether it is required.
func columnOf(row []string) sqldb.Column {
	length, _ := strconv.ParseInt(row[2], 10, 64)
	kind := strings.ToLower(row[1])
	if strings.Contains(kind, "char") || strings.Contains(kind, "binary") {
		kind += fmt.Sprintf("(%d)", length)
	}
	return sqldb.Column{Name: strings.ToLower(row[0]), Type: kind, Length: length, Odd: strings.TrimSpace(row[3]), Required: row[4] == "1"}
}

// index takes in the columns of unique indexes: the index, whether it is the primary key, drops duplicates, and is disabled.
func (r *relation) index(rows [][]string) {
	columns := map[string]string{}
	for _, row := range rows {
		columns[row[0]] += strings.ToLower(row[4]) + ","
	}
	for i, row := range rows {
		name, primary, off := row[0], row[1] == "1", row[3] == "1"
		if i > 0 && rows[i-1][0] == name {
			continue
		}
		if primary {
			r.key, r.ignores, r.keyOff = name, row[2] == "1", off
		}
		if primary || !off {
			r.Indexes = append(r.Indexes, sqldb.Index{Name: name, Key: primary && columns[name] == "worker_type,seq,"})
		}
	}
}

// azure reports whether the server is Azure SQL Database, or SQL database in Microsoft Fabric.
func (f *facts) azure() bool {
	return f.values[valueEdition] == editionAzure || f.values[valueEdition] == editionFabric
}

// hosted reports whether Microsoft runs the server, which has other versions then, and copies that take over.
func (f *facts) hosted() bool { return f.azure() || f.values[valueEdition] == editionManaged }

// grouped reports whether the database is in an availability group.
func (f *facts) grouped() bool { return f.values[valueGroup] != "" }

// clustered reports whether the server is an instance of a failover cluster: other machines, with clocks of their own,
// may run it on the same disks.
func (f *facts) clustered() bool { return f.values[valueClustered] == "1" }

// several reports whether another server may take writes, now or later.
func (f *facts) several() bool {
	return f.grouped() || f.hosted() || f.clustered()
}
