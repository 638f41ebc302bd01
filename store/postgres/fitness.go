package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckServer: the server is PostgreSQL, the primary, and keeps what it is given.
	CheckServer = "server"
	// CheckPooler: what is between here and the server passes transactions on.
	CheckPooler = "pooler"
	// CheckTable: the tables are ordinary ones, with the columns and the key of a ledger.
	CheckTable = "table"
	// CheckDurability: a crash, a loss of power and a failover lose nothing that was acknowledged.
	CheckDurability = "durability"
)

// oldest is the oldest version that is used, as server_version_num has it.
const oldest = 100000

// check says why the database can't keep a ledger, or nil.
func (l *Ledger) check(ctx context.Context) error {
	f, err := l.look(ctx)
	if why, all := allUnfit(err); all && l.known.Load() == nil {
		return storekit.Flaw{Check: CheckServer, What: why.Why, Remedy: "name the primary, or all servers"}.Refuse()
	}
	if err != nil {
		return err
	}
	if flaws := slices.Concat(f.serverFlaws(), l.tableFlaws(f.Ledger)); len(flaws) > 0 {
		if f.Standby || f.ReadOnly {
			return storekit.Unfit{Why: flaws[0].What} // ready has said otherwise a moment ago: it is a failover.
		}
		return flaws[0].Refuse()
	}
	if f.Ledger == nil {
		return l.missing()
	}
	if f.Standbys > 0 {
		l.copied.Store(true)
	}
	l.known.Store(f)
	return nil
}

// otherServers are servers that speak the protocol, and whose nodes have clocks or keys of their own.
var otherServers = regexp.MustCompile(`-YB-|Greenplum|Redshift|Materialize|CockroachDB`)

// serverFlaws are the reasons why a server is unfit.
func (f *facts) serverFlaws() (flaws []storekit.Flaw) {
	flaw := func(remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: CheckServer, Remedy: remedy, What: "the server " + fmt.Sprintf(format, args...)})
	}
	if !strings.HasPrefix(f.Version, "PostgreSQL ") || otherServers.MatchString(f.Version) {
		flaw("use PostgreSQL", "is %.60s, of which nothing is known", f.Version)
	}
	if f.Number < oldest {
		flaw("use version 10 or later", "has the version %d", f.Number)
	}
	if f.Standby {
		flaw("name the primary", "is a standby (pg_is_in_recovery)")
	} else if f.ReadOnly {
		flaw("turn default_transaction_read_only off for the user and the database", "lets sessions only read")
	}
	if f.Encoding != "UTF8" {
		flaw("use a database with the encoding UTF8", "keeps texts of the database in %.20s, which can't hold all that a record may have", f.Encoding)
	}
	return flaws
}

// byteOrder are the collations that compare byte by byte.
var byteOrder = []string{"C", "POSIX", "ucs_basic", "C.UTF-8", "C.utf8", "pg_c_utf8"}

// ledgerColumns are the columns of the records' table, with the types that do.
var ledgerColumns = map[string][]string{
	"worker_type": {"text"}, "seq": {"bigint"}, "document": {"json"},
}

// tableFlaws are the reasons why the table of the records is unfit; none if there is no table.
func (l *Ledger) tableFlaws(r *relation) (flaws []storekit.Flaw) {
	if r == nil {
		return nil
	}
	flaw := func(check, remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: check, Remedy: remedy, What: fmt.Sprintf("table %s.%s ", l.address.schema, l.address.table) + fmt.Sprintf(format, args...)})
	}
	other := "use another table"
	list := func(names []string) string { return fmt.Sprintf("%.200s", strings.Join(names, ", ")) }
	switch {
	case r.Kind == "p":
		flaw(CheckTable, other, "is partitioned: a partition can be detached or dropped, and the newest record with it")
	case r.Kind != "r":
		flaw(CheckTable, other, "is a %s", map[string]string{"v": "view", "m": "materialized view", "f": "foreign table"}[r.Kind])
		return flaws
	case r.Persistence == "u":
		flaw(CheckTable, "ALTER TABLE … SET LOGGED, while no worker works", "is unlogged: a crash empties it, and standbys don't have it")
	case r.Persistence != "p":
		flaw(CheckTable, other, "is temporary")
	}
	if r.Partition || len(r.Parents) > 0 {
		flaw(CheckTable, other, "is a part of %s, and goes with that", list(r.Parents))
	}
	if len(r.Children) > 0 && r.Kind == "r" {
		flaw(CheckTable, "ALTER TABLE … NO INHERIT", "has tables that inherit from it, whose rows have keys of their own: %s", list(r.Children))
	}
	if r.RowSecurity {
		flaw(store.CheckConstraints, "ALTER TABLE … DISABLE ROW LEVEL SECURITY", "has row-level security, which hides records from some users")
	}
	if len(r.Triggers) > 0 {
		flaw(store.CheckConstraints, "drop or disable them", "has triggers, which can change records or drop them: %s", list(r.Triggers))
	}
	if len(r.Rules) > 0 {
		flaw(store.CheckConstraints, "drop them", "has rules, which change what statements do: %s", list(r.Rules))
	}
	if len(r.Constraints) > 0 {
		flaw(store.CheckConstraints, "drop them", "has constraints besides its key, which can keep records out: %s", list(r.Constraints))
	}
	if r.Subscriptions > 0 {
		flaw(store.CheckConstraints, "take it out of the publication", "is written by a subscription, so that another server has keys of its own")
	}
	flaws = append(flaws, l.columnFlaws(r)...)
	return flaws
}

// columnFlaws are those of the columns and the key.
func (l *Ledger) columnFlaws(r *relation) (flaws []storekit.Flaw) {
	flaw := func(check, remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: check, Remedy: remedy, What: fmt.Sprintf("table %s.%s ", l.address.schema, l.address.table) + fmt.Sprintf(format, args...)})
	}
	other := "use another table"
	seen := map[string]bool{}
	for _, c := range r.Columns {
		types, ours := ledgerColumns[c.Name]
		seen[c.Name] = ours
		switch {
		case !ours && c.Required:
			flaw(store.CheckConstraints, "give it a default, or drop it", "has a column that records lack, and that must not be null: %.60q", c.Name)
		case ours && !slices.Contains(types, c.Type):
			flaw(CheckTable, other, "has the column %s of the type %.60s, must be %s", c.Name, c.Type, types[0])
		case c.Name == "worker_type" && !slices.Contains(byteOrder, c.Collation):
			flaw(CheckTable, other, `has the column worker_type with the collation %.60q, must be "C": others may take two names for one, and change with the operating system`, c.Collation)
		}
	}
	for _, name := range []string{"worker_type", "seq", "document"} {
		if !seen[name] {
			flaw(CheckTable, other, "has no column %s", name)
		}
	}
	isKey := func(x index) bool { return x.Plain && slices.Equal(x.Columns, []string{"seq", "worker_type"}) }
	if !slices.ContainsFunc(r.Indexes, isKey) {
		flaw(CheckTable, "ALTER TABLE … ADD PRIMARY KEY (worker_type, seq)", "has no primary key (worker_type, seq), or one that is checked only later")
	}
	for _, x := range r.Indexes {
		if !isKey(x) {
			flaw(store.CheckConstraints, "drop it", "has a unique index besides its key, which keeps records out: %.120s", x.Name)
		}
	}
	return flaws
}

// statementMode makes the refusal of a pooler that allows no transactions a flaw.
func (l *Ledger) statementMode(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && strings.Contains(e.Message, "statement pooling mode") {
		return storekit.Flaw{
			Check: CheckPooler, What: "the pooler allows no transactions (pool_mode = statement)", Remedy: "use pool_mode = transaction or session",
		}.Refuse()
	}
	return err
}
