package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// allChecks is how many checks there are.
const allChecks = 14

func TestATableThatIsUnfitIsRefusedAndTheFaultFound(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	documenttest.UnfitIsRefused(t, map[string]documenttest.Unfit{
		"unlogged":                {Plant: []string{`ALTER TABLE T SET UNLOGGED`}, Check: CheckTable, Says: "is unlogged: a crash empties it"},
		"partitioned":             {Plant: []string{`DROP TABLE T`, `CREATE TABLE T (worker_type text COLLATE "C", seq bigint, document json, PRIMARY KEY (worker_type, seq)) PARTITION BY HASH (worker_type)`}, Check: CheckTable, Says: "is a partitioned table: a partition can be detached"},
		"a partition":             {Plant: []string{`CREATE TABLE T_all (worker_type text COLLATE "C" NOT NULL, seq bigint NOT NULL, document json NOT NULL) PARTITION BY HASH (worker_type)`, `ALTER TABLE T_all ATTACH PARTITION T FOR VALUES WITH (MODULUS 1, REMAINDER 0)`}, Check: CheckTable, Says: "is a part of T_all"},
		"a child":                 {Plant: []string{`CREATE TABLE T_more () INHERITS (T)`}, Check: CheckTable, Says: "has tables that inherit from it, whose rows have keys of their own: T_more"},
		"a parent":                {Plant: []string{`CREATE TABLE T_base (extra text)`, `ALTER TABLE T ADD COLUMN extra text`, `ALTER TABLE T INHERIT T_base`}, Check: CheckTable, Says: "is a part of T_base"},
		"a view":                  {Plant: []string{`ALTER TABLE T RENAME TO T_real`, `CREATE VIEW T AS SELECT * FROM T_real`}, Check: CheckTable, Says: "is a view: use another table"},
		"row-level security":      {Plant: []string{`ALTER TABLE T ENABLE ROW LEVEL SECURITY`}, Check: store.CheckConstraints, Says: "has row-level security, which hides records"},
		"a trigger":               {Plant: []string{`CREATE FUNCTION T_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`, `CREATE TRIGGER audit AFTER INSERT ON T FOR EACH ROW EXECUTE FUNCTION T_f()`}, Check: store.CheckConstraints, Says: "has triggers, which can change records or drop them: audit: drop them"},
		"a rule":                  {Plant: []string{`CREATE RULE nothing AS ON DELETE TO T DO INSTEAD NOTHING`}, Check: store.CheckConstraints, Says: "has rules, which change what statements do: nothing"},
		"a check":                 {Plant: []string{`ALTER TABLE T ADD CONSTRAINT few CHECK (seq < 100)`}, Check: store.CheckConstraints, Says: "has constraints besides its key, which can keep records out: few"},
		"a foreign key":           {Plant: []string{`CREATE TABLE T_types (name text COLLATE "C" PRIMARY KEY)`, `ALTER TABLE T ADD CONSTRAINT typed FOREIGN KEY (worker_type) REFERENCES T_types`}, Check: store.CheckConstraints, Says: "which can keep records out: typed"},
		"an exclusion constraint": {Plant: []string{`ALTER TABLE T ADD CONSTRAINT T_apart EXCLUDE USING btree (seq WITH =)`}, Check: store.CheckConstraints, Says: "which can keep records out: T_apart"},
		"a unique index":          {Plant: []string{`CREATE UNIQUE INDEX T_more ON T (worker_type, (seq / 2))`}, Check: store.CheckConstraints, Says: "has a unique index besides its key, which keeps records out: T_more"},
		"a caseless index":        {Plant: []string{`CREATE COLLATION IF NOT EXISTS caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`, `CREATE UNIQUE INDEX T_more ON T (worker_type COLLATE caseless, seq)`}, Check: store.CheckConstraints, Says: "has a unique index besides its key, which keeps records out: T_more"},
		"a required column":       {Plant: []string{`ALTER TABLE T ADD COLUMN owner text NOT NULL`}, Check: store.CheckConstraints, Says: `has a column that records lack, and that must not be null: "owner"`},
		"no key":                  {Plant: []string{`ALTER TABLE T DROP CONSTRAINT T_pkey`}, Check: CheckTable, Says: "has no primary key (worker_type, seq)"},
		"a key that waits":        {Plant: []string{`ALTER TABLE T DROP CONSTRAINT T_pkey`, `ALTER TABLE T ADD PRIMARY KEY (worker_type, seq) DEFERRABLE`}, Check: CheckTable, Says: "or one that is checked only later"},
		"a key of some rows":      {Plant: []string{`ALTER TABLE T DROP CONSTRAINT T_pkey`, `CREATE UNIQUE INDEX T_some ON T (worker_type, seq) WHERE seq > 1`}, Check: CheckTable, Says: "has no primary key (worker_type, seq)"},
		"another collation":       {Plant: []string{`ALTER TABLE T ALTER worker_type TYPE text COLLATE "en-x-icu"`}, Check: CheckTable, Says: `has the column worker_type of the type text COLLATE en-x-icu, must be text COLLATE "C"`},
		"another type of seq":     {Plant: []string{`ALTER TABLE T ALTER seq TYPE numeric`}, Check: CheckTable, Says: "has the column seq of the type numeric, must be bigint"},
		"jsonb, which cleans up":  {Plant: []string{`ALTER TABLE T ALTER document TYPE jsonb`}, Check: CheckTable, Says: "has the column document of the type jsonb, must be json"},
		"a column less":           {Plant: []string{`ALTER TABLE T DROP COLUMN document`}, Check: CheckTable, Says: "has no column document"},
	}, func(t testing.TB, table string) store.Ledger { return opened(t, Options{URI: uri, Table: table}) }, func(t testing.TB, text string) { execute(t, uri, text) })
}

func TestADatabaseThatIsUnfitIsRefused(t *testing.T) {
	t.Parallel()
	shared := postgrespeer.Shared(t)
	for name, c := range map[string]struct {
		create, set string
		check       string
		says        string
	}{
		"another encoding": {"ENCODING 'LATIN1' TEMPLATE template0", "", CheckServer, "keeps texts of the database in LATIN1"},
		"no encoding":      {"ENCODING 'SQL_ASCII' TEMPLATE template0", "", CheckServer, "keeps texts of the database in SQL_ASCII"},
		"only reading":     {"", "default_transaction_read_only = on", CheckServer, "lets sessions only read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := newTable()
			execute(t, shared, "CREATE DATABASE "+database+" "+c.create)
			if c.set != "" {
				execute(t, shared, "ALTER DATABASE "+database+" SET "+c.set)
			}
			l := opened(t, Options{URI: strings.Replace(shared, "/postgres?", "/"+database+"?", 1)})
			documenttest.Says(t, "Init()", l.Init(within(t)), store.ErrRefused, c.says)
			_, _, err := l.Tail(within(t), "job", 1)
			documenttest.Sentinel(t, "Tail()", err, store.ErrRefused)
			found, err := l.Examine(within(t))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, c.check, store.LevelFail, c.says)
		})
	}
}

func TestAPoolerInStatementModeIsRefused(t *testing.T) {
	t.Parallel()
	direct := postgrespeer.Shared(t)
	l := opened(t, Options{URI: postgrespeer.Pooler(t, direct, "statement"), Table: newTable()})
	documenttest.Says(t, "Init()", l.Init(within(t)), store.ErrRefused, "the pooler allows no transactions", "use pool_mode = transaction or session")
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckPooler, store.LevelFail, "the pooler allows no transactions")
	documenttest.FindsNoMore(t, found, CheckPooler, CheckServer, CheckDurability, store.CheckServerClocks, store.CheckLedger, CheckTable, store.CheckExpiry, store.CheckConstraints,
		store.CheckAppend, store.CheckRead, store.CheckTrim, store.CheckRoster)
}

func TestInitNeedsNoMoreRightsThanWhatIsMissing(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Database(t)
	may := postgrespeer.Role(t, uri, "CREATE ON SCHEMA public")
	mayNot := postgrespeer.Role(t, uri, "USAGE ON SCHEMA public")
	documenttest.Says(t, "Init() without the right", opened(t, Options{URI: mayNot}).Init(within(t)), store.ErrDenied, "permission denied for schema public")
	initialised(t, Options{URI: may})
	if err := opened(t, Options{URI: mayNot}).Init(within(t)); err != nil {
		t.Errorf("Init() of what is there, without rights = %v, want nil", err)
	}
	// A schema of its own is made, too.
	initialised(t, Options{URI: uri, Schema: "leases", Table: "all_of_them"})
	execute(t, uri, `SELECT worker_type, seq, document FROM leases.all_of_them`)
	execute(t, uri, `SELECT worker_type, id, document FROM leases.all_of_them_roster`)
}

func TestManyThatInitialiseAtOnceAllSucceed(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Database(t)
	documenttest.InitialiseAtOnce(t, func() store.Ledger { return opened(t, Options{URI: uri, Schema: "fresh", MaxConns: 1}) })
}

func TestASoundStoreIsFoundSo(t *testing.T) {
	t.Parallel()
	l := initialised(t, Options{URI: postgrespeer.Start(t, postgrespeer.Options{}).URI()})
	if d := l.Durability(); !strings.HasPrefix(d.Power, "All survive, if the disk") || !strings.HasPrefix(d.Failover, "No standby was seen") {
		t.Errorf("Durability() = %+v, want all to survive, and no failover", d)
	}
	documenttest.IsSound(t, l, allChecks)
}

func TestWhatLosesRecordsIsSaid(t *testing.T) {
	t.Parallel()
	s := postgrespeer.Start(t, postgrespeer.Options{Settings: []string{"fsync=off", "full_page_writes=off", "synchronous_standby_names=gone"}})
	execute(t, s.URI(), `ALTER SYSTEM SET synchronous_commit = local`) // For Init, which creates tables.
	execute(t, s.URI(), `SELECT pg_reload_conf()`)
	l := opened(t, Options{URI: s.URI()})
	if err := l.Init(within(t)); err != nil {
		t.Fatalf("Init() = %v, want nil", err)
	}
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	for _, says := range []string{"fsync is off", "full_page_writes is off", "no synchronous standby is connected"} {
		if all := documenttest.Lines(found); !strings.Contains(all, "warn durability: "+says) {
			t.Errorf("Examine() found\n%swant %q", all, says)
		}
		if w := l.Warning(); !strings.Contains(w, says) {
			t.Errorf("Warning() = %q, want %q in it", w, says)
		}
	}
	if d := l.Durability(); !strings.Contains(d.Power, "fsync is off") || !strings.Contains(d.Failover, "when each of them has it") {
		t.Errorf("Durability() = %+v, want what fsync=off loses", d)
	}
	if err := l.Append(documenttest.Within(t, brief), storetest.Grant("job", 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append() without the standby = %v, want a deadline", err)
	}
}

func TestARightThatIsMissingIsFound(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Database(t)
	initialised(t, Options{URI: uri})
	const all = "SELECT, INSERT, UPDATE, DELETE ON worker_leases_roster"
	documenttest.RightsAreFound(t, map[string]documenttest.Right{
		"none missing":               {Rights: []string{"SELECT, INSERT, DELETE ON worker_leases", all}, Check: store.CheckAppend, Level: store.LevelOK, Says: "granted to r"},
		"columns do":                 {Rights: []string{"SELECT (worker_type, seq, document), INSERT (worker_type, seq, document) ON worker_leases", "DELETE ON worker_leases", all}, Check: store.CheckAppend, Level: store.LevelOK, Says: "granted to r"},
		"no insert":                  {Rights: []string{"SELECT, DELETE ON worker_leases", all}, Denied: true, Check: store.CheckAppend, Level: store.LevelFail, Says: "lacks INSERT ON public.worker_leases → GRANT INSERT ON public.worker_leases TO r"},
		"no select":                  {Rights: []string{"INSERT ON worker_leases", all}, Denied: true, Check: store.CheckRead, Level: store.LevelFail, Says: "lacks SELECT ON public.worker_leases", Also: []string{store.CheckAppend, store.CheckTrim}},
		"no delete":                  {Rights: []string{"SELECT, INSERT ON worker_leases", all}, Check: store.CheckTrim, Level: store.LevelWarn, Says: "lacks DELETE ON public.worker_leases"},
		"no rights in the roster":    {Rights: []string{"SELECT, INSERT, DELETE ON worker_leases"}, Check: store.CheckRoster, Level: store.LevelWarn, Says: "lacks SELECT, INSERT, UPDATE, DELETE ON public.worker_leases_roster"},
		"only some in the roster":    {Rights: []string{"SELECT, INSERT, DELETE ON worker_leases", "SELECT, INSERT ON worker_leases_roster"}, Check: store.CheckRoster, Level: store.LevelWarn, Says: "lacks UPDATE, DELETE ON public.worker_leases_roster"},
		"one column can't be filled": {Rights: []string{"SELECT, DELETE ON worker_leases", "INSERT (worker_type, seq) ON worker_leases", all}, Denied: true, Check: store.CheckAppend, Level: store.LevelFail, Says: "lacks INSERT ON public.worker_leases"},
	}, func(t testing.TB, rights []string) store.Ledger {
		t.Helper()
		return opened(t, Options{URI: postgrespeer.Role(t, uri, rights...)})
	})
}

// It hides the ledger from those who aren't exempt, and nobody notices by what is read.
func TestRowSecurityThatIsSetInBetweenIsNamedByTheNextAppend(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Database(t)
	exempt := initialised(t, Options{URI: uri})
	worker := opened(t, Options{URI: postgrespeer.Role(t, uri, "SELECT, INSERT ON worker_leases")})
	must(t, "Append()", worker.Append(within(t), storetest.Grant("job", 1)))
	execute(t, uri, `ALTER TABLE worker_leases ENABLE ROW LEVEL SECURITY`)
	documenttest.Says(t, "Append() by a superuser", exempt.Append(within(t), storetest.Grant("job", 2)), store.ErrRefused, "has row-level security")
	documenttest.Says(t, "Append()", worker.Append(within(t), storetest.Grant("job", 3)), store.ErrDenied, "row-level security")
}
