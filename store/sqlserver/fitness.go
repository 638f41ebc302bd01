//go:build sqlserver

package sqlserver

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone. Other stores have checks with the same names.
const (
	// CheckServer: the server is SQL Server or Azure SQL Database, and takes writes. It is never more than a warning, as
	// long as this store is untested.
	CheckServer = "server"
	// CheckTable: the tables have the columns and the key of a ledger.
	CheckTable = "table"
	// CheckDurability: a crash, a loss of power and a failover lose nothing that was acknowledged.
	CheckDurability = "durability"
)

const (
	// oldestVersion is SQL Server 2016: the first with DATEDIFF_BIG and SESSION_CONTEXT. Azure's and managed instances' is 12
	// for ever.
	oldestVersion = 13
	// leastType is the least size of the column of worker types, in bytes.
	leastType = 63
)

// The values of SERVERPROPERTY('EngineEdition'):
// https://learn.microsoft.com/sql/t-sql/functions/serverproperty-transact-sql
const (
	editionAzure   = "5"
	editionManaged = "8"
	editionFabric  = "12"
)

// editions are those that keep ledgers. Azure Synapse (6 and 11) enforces no keys.
var editions = []string{"1", "2", "3", "4", editionAzure, editionManaged, "9", editionFabric}

// check says why the database can't keep a ledger, or nil.
func (l *Ledger) check(ctx context.Context) error {
	f, err := l.look(ctx)
	if err != nil {
		why, unfit := storekit.AllUnfit(err)
		if !unfit {
			why, unfit = ofServer(err)
		}
		if unfit && l.known.Load() == nil {
			return storekit.Flaw{Check: CheckServer, What: why.Why, Remedy: nameTheRightOne}.Refuse()
		}
		return err
	}
	return l.judge(ctx, f)
}

// judge takes in the facts, and says why the database can't keep a ledger, or nil.
func (l *Ledger) judge(ctx context.Context, f *facts) error {
	if flaws := slices.Concat(f.serverFlaws(), l.tableFlaws(f.ledger)); len(flaws) > 0 {
		return flaws[0].Refuse()
	}
	if f.ledger == nil {
		return l.absent(ctx)
	}
	if f.several() {
		l.shared.Store(true)
	}
	l.known.Store(f)
	return nil
}

// serverFlaws are the reasons why a server or its database is unfit.
func (f *facts) serverFlaws() (flaws []storekit.Flaw) {
	flaw := func(remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: CheckServer, Remedy: remedy, What: fmt.Sprintf(format, args...)})
	}
	v := f.values
	if strings.Contains(strings.ToLower(v[valueBanner]), "babelfish") || !slices.Contains(editions, v[valueEdition]) {
		flaw("use SQL Server or Azure SQL Database", "the server is %.80s (engine edition %.20s), of which nothing is known, or which enforces no keys", v[valueBanner], v[valueEdition])
	} else if !f.hosted() && f.version() < oldestVersion {
		flaw("use SQL Server 2016 or later", "the server has the version %.60s", v[valueVersion])
	}
	if v[valueUpdate] != "READ_WRITE" {
		flaw(nameTheRightOne, "the database takes no writes here (Updateability is %.40s)", v[valueUpdate])
	}
	if strings.EqualFold(v[valueDatabase], "tempdb") {
		flaw("use another database", "the database is tempdb, which the server empties whenever it starts: two workers may then hold one slot")
	}
	if v[valueDelayed] == "FORCED" {
		flaw("ALTER DATABASE … SET DELAYED_DURABILITY = ALLOWED, or DISABLED",
			"the database acknowledges what isn't on the disk yet (DELAYED_DURABILITY = FORCED): a crash loses the newest records, and two workers may hold one slot")
	}
	return flaws
}

// version is the server's major version, or 0.
func (f *facts) version() int {
	major, _, _ := strings.Cut(f.values[valueVersion], ".")
	n, _ := strconv.Atoi(major)
	return n
}

// tableFlaws are the reasons why the table of the records is unfit; none if there is no table.
func (l *Ledger) tableFlaws(r *relation) (flaws []storekit.Flaw) {
	if r == nil {
		return nil
	}
	flaw := func(check, remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: check, Remedy: remedy, What: fmt.Sprintf("table %s ", l.address.name()) + fmt.Sprintf(format, args...)})
	}
	list := func(names []string) string { return fmt.Sprintf("%.200s", strings.Join(names, ", ")) }
	if r.kind != "USER_TABLE" {
		flaw(CheckTable, anotherTable, "is a %s", strings.ToLower(strings.ReplaceAll(r.kind, "_", " ")))
		return flaws
	}
	if r.kinds != "" {
		flaw(CheckTable, anotherTable, "is of a kind that keeps records in another way: %.60s", r.kinds)
	}
	if len(r.triggers) > 0 {
		flaw(store.CheckConstraints, "drop them", "has triggers, which can change records: %s", list(r.triggers))
	}
	if len(r.constraints) > 0 {
		flaw(store.CheckConstraints, "drop them", "has constraints besides its key, which can keep records out: %s", list(r.constraints))
	}
	if len(r.policies) > 0 {
		flaw(store.CheckConstraints, "drop them, or leave the table out of them", "has row-level security policies, which hide records or keep them out: %s", list(r.policies))
	}
	return slices.Concat(flaws, l.columnFlaws(r), l.keyFlaws(r))
}

// anotherTable is what to do about a table that is something else.
const anotherTable = "use another table"

// columnFlaws are those of the columns.
func (l *Ledger) columnFlaws(r *relation) (flaws []storekit.Flaw) {
	flaw := func(check, remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: check, Remedy: remedy, What: fmt.Sprintf("table %s ", l.address.name()) + fmt.Sprintf(format, args...)})
	}
	seen := map[string]bool{}
	for _, c := range r.columns {
		ours := slices.Contains([]string{"worker_type", "seq", "document"}, c.name)
		seen[c.name] = ours
		switch {
		case ours && c.odd != "":
			flaw(CheckTable, anotherTable, "has the column %s, which is %.60s: it doesn't give back what was stored", c.name, c.odd)
		case strings.Contains(c.odd, "computed"):
			flaw(store.CheckConstraints, "drop it", "has a column that is computed, and whose failure keeps records out: %.60q", c.name)
		case !ours && c.required:
			flaw(store.CheckConstraints, "give it a default, or drop it", "has a column that records lack, and that must not be null: %.60q", c.name)
		case c.name == "worker_type" && (c.kind != "varbinary" || c.length >= 0 && c.length < leastType):
			flaw(CheckTable, anotherTable, "has the column worker_type of the type %.60s(%d), must be varbinary(%d) or longer: others may take two names for one", c.kind, c.length, leastType)
		case c.name == "seq" && c.kind != "bigint":
			flaw(CheckTable, anotherTable, "has the column seq of the type %.60s, must be bigint", c.kind)
		case c.name == "document" && (c.kind != "nvarchar" || c.length != -1):
			flaw(CheckTable, anotherTable, "has the column document of the type %.60s(%d), must be nvarchar(max): others don't keep each character of a record", c.kind, c.length)
		}
	}
	for _, name := range []string{"worker_type", "seq", "document"} {
		if !seen[name] {
			flaw(CheckTable, anotherTable, "has no column %s, or the user may not know of it", name)
		}
	}
	return flaws
}

// keyFlaws are those of the key, and of other unique indexes.
func (l *Ledger) keyFlaws(r *relation) (flaws []storekit.Flaw) {
	flaw := func(check, remedy, format string, args ...any) {
		flaws = append(flaws, storekit.Flaw{Check: check, Remedy: remedy, What: fmt.Sprintf("table %s ", l.address.name()) + fmt.Sprintf(format, args...)})
	}
	keyed := false
	for _, x := range r.indexes {
		switch {
		case x.name != r.key:
			if !x.off {
				flaw(store.CheckConstraints, "drop it", "has a unique index besides its key, which keeps records out: %.120s", x.name)
			}
		case x.off:
			flaw(CheckTable, "ALTER INDEX … REBUILD", "has a primary key that is disabled: %.120s", x.name)
		case x.ignores:
			flaw(CheckTable, "ALTER INDEX … SET (IGNORE_DUP_KEY = OFF)", "has a primary key that drops duplicates without an error (IGNORE_DUP_KEY): %.120s", x.name)
		}
		keyed = keyed || x.name == r.key && x.columns == "worker_type, seq"
	}
	if !keyed {
		flaw(CheckTable, "ALTER TABLE … ADD CONSTRAINT … PRIMARY KEY (worker_type, seq)", "has no primary key (worker_type, seq)")
	}
	return flaws
}
