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
	for name, c := range map[string]struct {
		// plant is executed before Init; T stands for the table.
		plant []string
		check string
		says  string // of an Append, and of the finding and its remedy
	}{
		"unlogged":                {[]string{`ALTER TABLE T SET UNLOGGED`}, CheckTable, "is unlogged: a crash empties it"},
		"partitioned":             {[]string{`DROP TABLE T`, `CREATE TABLE T (worker_type text COLLATE "C", seq bigint, document json, PRIMARY KEY (worker_type, seq)) PARTITION BY HASH (worker_type)`}, CheckTable, "is partitioned: a partition can be detached"},
		"a partition":             {[]string{`CREATE TABLE T_all (worker_type text COLLATE "C" NOT NULL, seq bigint NOT NULL, document json NOT NULL) PARTITION BY HASH (worker_type)`, `ALTER TABLE T_all ATTACH PARTITION T FOR VALUES WITH (MODULUS 1, REMAINDER 0)`}, CheckTable, "is a part of T_all"},
		"a child":                 {[]string{`CREATE TABLE T_more () INHERITS (T)`}, CheckTable, "has tables that inherit from it, whose rows have keys of their own: T_more"},
		"a parent":                {[]string{`CREATE TABLE T_base (extra text)`, `ALTER TABLE T ADD COLUMN extra text`, `ALTER TABLE T INHERIT T_base`}, CheckTable, "is a part of T_base"},
		"a view":                  {[]string{`ALTER TABLE T RENAME TO T_real`, `CREATE VIEW T AS SELECT * FROM T_real`}, CheckTable, "is a view: use another table"},
		"row-level security":      {[]string{`ALTER TABLE T ENABLE ROW LEVEL SECURITY`}, store.CheckConstraints, "has row-level security, which hides records"},
		"a trigger":               {[]string{`CREATE FUNCTION T_f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'`, `CREATE TRIGGER audit AFTER INSERT ON T FOR EACH ROW EXECUTE FUNCTION T_f()`}, store.CheckConstraints, "has triggers, which can change records or drop them: audit: drop or disable them"},
		"a rule":                  {[]string{`CREATE RULE nothing AS ON DELETE TO T DO INSTEAD NOTHING`}, store.CheckConstraints, "has rules, which change what statements do: nothing"},
		"a check":                 {[]string{`ALTER TABLE T ADD CONSTRAINT few CHECK (seq < 100)`}, store.CheckConstraints, "has constraints besides its key, which can keep records out: few"},
		"a foreign key":           {[]string{`CREATE TABLE T_types (name text COLLATE "C" PRIMARY KEY)`, `ALTER TABLE T ADD CONSTRAINT typed FOREIGN KEY (worker_type) REFERENCES T_types`}, store.CheckConstraints, "which can keep records out: typed"},
		"an exclusion constraint": {[]string{`ALTER TABLE T ADD CONSTRAINT T_apart EXCLUDE USING btree (seq WITH =)`}, store.CheckConstraints, "which can keep records out: T_apart"},
		"a unique index":          {[]string{`CREATE UNIQUE INDEX T_more ON T (worker_type, (seq / 2))`}, store.CheckConstraints, "has a unique index besides its key, which keeps records out: T_more"},
		"a caseless index":        {[]string{`CREATE COLLATION IF NOT EXISTS caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`, `CREATE UNIQUE INDEX T_more ON T (worker_type COLLATE caseless, seq)`}, store.CheckConstraints, "has a unique index besides its key, which keeps records out: T_more"},
		"a required column":       {[]string{`ALTER TABLE T ADD COLUMN owner text NOT NULL`}, store.CheckConstraints, `has a column that records lack, and that must not be null: "owner"`},
		"no key":                  {[]string{`ALTER TABLE T DROP CONSTRAINT T_pkey`}, CheckTable, "has no primary key (worker_type, seq)"},
		"a key that waits":        {[]string{`ALTER TABLE T DROP CONSTRAINT T_pkey`, `ALTER TABLE T ADD PRIMARY KEY (worker_type, seq) DEFERRABLE`}, CheckTable, "or one that is checked only later"},
		"a key of some rows":      {[]string{`ALTER TABLE T DROP CONSTRAINT T_pkey`, `CREATE UNIQUE INDEX T_some ON T (worker_type, seq) WHERE seq > 1`}, CheckTable, "has no primary key (worker_type, seq)"},
		"another collation":       {[]string{`ALTER TABLE T ALTER worker_type TYPE text COLLATE "en-x-icu"`}, CheckTable, `has the column worker_type with the collation "en-x-icu", must be "C"`},
		"another type of seq":     {[]string{`ALTER TABLE T ALTER seq TYPE numeric`}, CheckTable, "has the column seq of the type numeric, must be bigint"},
		"jsonb, which cleans up":  {[]string{`ALTER TABLE T ALTER document TYPE jsonb`}, CheckTable, "has the column document of the type jsonb, must be json"},
		"a column less":           {[]string{`ALTER TABLE T DROP COLUMN document`}, CheckTable, "has no column document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := newTable()
			says := strings.ReplaceAll(c.says, "T_", table+"_")
			initialised(t, Options{URI: uri, Table: table})
			for _, text := range c.plant {
				execute(t, uri, strings.NewReplacer("TABLE T", "TABLE "+table, "ON T", "ON "+table, "TO T", "TO "+table, "FROM T", "FROM "+table,
					"INDEX T", "INDEX "+table, "PARTITION T", "PARTITION "+table, "VIEW T", "VIEW "+table, "FUNCTION T", "FUNCTION "+table,
					"INHERIT T", "INHERIT "+table, "INHERITS (T", "INHERITS ("+table, "REFERENCES T", "REFERENCES "+table, "CONSTRAINT T", "CONSTRAINT "+table).Replace(text))
			}
			l := opened(t, Options{URI: uri, Table: table})
			err := l.Append(within(t), storetest.Grant("job", 1))
			documenttest.Sentinel(t, "Append()", err, store.ErrRefused)
			documenttest.Says(t, "Append()", err, store.ErrNotStored, says)
			err = opened(t, Options{URI: uri, Table: table}).Init(within(t))
			documenttest.Says(t, "Init()", err, store.ErrRefused, says)
			found, err := l.Examine(within(t))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, c.check, store.LevelFail, strings.NewReplacer(": drop or", " → drop or", ": use", " → use").Replace(says))
			if len(found) < allChecks {
				t.Errorf("Examine() found\n%swant at least %d findings", documenttest.Lines(found), allChecks)
			}
		})
	}
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
	done := make(chan error)
	const handles = 8
	for range handles {
		l := opened(t, Options{URI: uri, Schema: "fresh", MaxConns: 1})
		ctx := within(t)
		go func() { done <- l.Init(ctx) }()
	}
	for range handles {
		if err := <-done; err != nil {
			t.Errorf("Init() beside others = %v, want nil", err)
		}
	}
}

// Whether a server that hasn't answered syncs its commits isn't known.
func TestNothingIsPromisedOfAServerThatWasNotSeen(t *testing.T) {
	t.Parallel()
	d := opened(t, Options{URI: "postgres://me@127.0.0.1:1/jobs"}).Durability()
	for what, text := range map[string]string{"power": d.Power, "failover": d.Failover} {
		if !strings.HasPrefix(text, "Not known before the first use of the server") {
			t.Errorf("Durability() says of %s: %q, want that it isn't known", what, text)
		}
	}
}

func TestASoundStoreIsFoundSo(t *testing.T) {
	t.Parallel()
	s := postgrespeer.Start(t, postgrespeer.Options{})
	l := initialised(t, Options{URI: s.URI()})
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.FindsNoMore(t, found)
	if len(found) != allChecks {
		t.Errorf("Examine() found\n%swant %d findings", documenttest.Lines(found), allChecks)
	}
	if w := l.Warning(); w != "" {
		t.Errorf("Warning() = %q, want none", w)
	}
	if d := l.Durability(); !strings.HasPrefix(d.Power, "All survive, if the disk") || !strings.HasPrefix(d.Failover, "No standby is connected") {
		t.Errorf("Durability() = %+v, want all to survive, and no failover", d)
	}
	must(t, "Close()", l.Close(within(t)))
	if found, err := l.Examine(within(t)); !errors.Is(err, store.ErrClosed) || found != nil {
		t.Errorf("Examine() after Close = %v, %v, want ErrClosed", found, err)
	}
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
	if d := l.Durability(); !strings.Contains(d.Power, "fsync is off") || !strings.Contains(d.Failover, "when as many have it") {
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
	for name, c := range map[string]struct {
		rights []string
		denied bool   // CheckRights denies
		check  string // the check that finds it
		level  store.Level
		says   string
		also   []string
	}{
		"none missing":               {rights: []string{"SELECT, INSERT, DELETE ON worker_leases", all}, check: store.CheckAppend, level: store.LevelOK, says: "granted to r"},
		"columns do":                 {rights: []string{"SELECT (worker_type, seq, document), INSERT (worker_type, seq, document) ON worker_leases", "DELETE ON worker_leases", all}, check: store.CheckAppend, level: store.LevelOK, says: "granted to r"},
		"no insert":                  {rights: []string{"SELECT, DELETE ON worker_leases", all}, denied: true, check: store.CheckAppend, level: store.LevelFail, says: "lacks INSERT ON public.worker_leases → GRANT INSERT ON public.worker_leases TO r"},
		"no select":                  {rights: []string{"INSERT ON worker_leases", all}, denied: true, check: store.CheckRead, level: store.LevelFail, says: "lacks SELECT ON public.worker_leases", also: []string{store.CheckAppend, store.CheckTrim}},
		"no delete":                  {rights: []string{"SELECT, INSERT ON worker_leases", all}, check: store.CheckTrim, level: store.LevelWarn, says: "lacks DELETE ON public.worker_leases"},
		"no rights in the roster":    {rights: []string{"SELECT, INSERT, DELETE ON worker_leases"}, check: store.CheckRoster, level: store.LevelWarn, says: "lacks SELECT, INSERT, UPDATE, DELETE ON public.worker_leases_roster"},
		"only some in the roster":    {rights: []string{"SELECT, INSERT, DELETE ON worker_leases", "SELECT, INSERT ON worker_leases_roster"}, check: store.CheckRoster, level: store.LevelWarn, says: "lacks UPDATE, DELETE ON public.worker_leases_roster"},
		"one column can't be filled": {rights: []string{"SELECT, DELETE ON worker_leases", "INSERT (worker_type, seq) ON worker_leases", all}, denied: true, check: store.CheckAppend, level: store.LevelFail, says: "lacks INSERT ON public.worker_leases"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := opened(t, Options{URI: postgrespeer.Role(t, uri, c.rights...)})
			err := l.CheckRights(within(t))
			if (err != nil) != c.denied || c.denied && !errors.Is(err, store.ErrDenied) {
				t.Errorf("CheckRights() = %v, want denied %v", err, c.denied)
			}
			// The server says the same.
			worker := "job" + newTable()
			err = l.Append(within(t), storetest.Grant(worker, 1))
			if (err != nil) != c.denied || c.denied && (!errors.Is(err, store.ErrDenied) || !errors.Is(err, store.ErrNotStored)) {
				t.Errorf("Append() = %v, want denied %v", err, c.denied)
			}
			found, err := l.Examine(within(t))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, c.check, c.level, c.says)
			documenttest.FindsNoMore(t, found, append(c.also, c.check, CheckDurability)...)
		})
	}
}
