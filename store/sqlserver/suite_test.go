//go:build sqlserver

package sqlserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// variable names a real server, on which a user may create and drop tables in a database:
//
//	SLOTLEASE_SQLSERVER='sqlserver://sa:PASSWORD@localhost/slotlease?trustServerCertificate=true' go test -tags sqlserver ./store/sqlserver
const variable = "SLOTLEASE_SQLSERVER"

func TestMain(m *testing.M) {
	storetest.PlayContender(func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) })
	m.Run()
}

// named is the URI of the server that is named. Without one, the test is skipped.
func named(t testing.TB) string {
	t.Helper()
	uri := os.Getenv(variable)
	if uri == "" {
		t.Skipf("no server: set %s=sqlserver://USER:PASSWORD@HOST/DATABASE, as a user who may create tables", variable)
	}
	return uri
}

// newTable is the name of a table that no other test has, and that is dropped after it.
func newTable(t testing.TB) string {
	t.Helper()
	name := "t" + strings.ToLower(rand.Text())
	uri := named(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		l, err := Open(ctx, Options{URI: uri})
		must(t, "Open()", err)
		defer func() { _ = l.Close(ctx) }()
		for _, what := range []string{"SECURITY POLICY %[1]s_policy", "TABLE %[1]s", "TABLE %[1]s_roster", "FUNCTION %[1]s_function"} {
			_, err := l.db.ExecContext(ctx, fmt.Sprintf("DROP "+what, "IF EXISTS "+DefaultSchema+"."+name))
			if err != nil {
				t.Logf("drop what a test left: %v", err)
			}
		}
	})
	return name
}

// execute executes a statement past the ledger.
func execute(t testing.TB, text string, args ...any) {
	t.Helper()
	l := opened(t, Options{URI: named(t)})
	_, err := l.db.ExecContext(within(t), text, args...)
	must(t, text, err)
}

// initialised is an opened ledger that is initialised.
func initialised(t testing.TB, o Options) *Ledger {
	t.Helper()
	l := opened(t, o)
	must(t, "Init()", l.Init(within(t)))
	return l
}

func TestConformance(t *testing.T) {
	uri := named(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		table := newTable(t)
		return storetest.Harness{
			Open: func(t testing.TB) store.Ledger {
				t.Helper()
				return opened(t, Options{URI: uri, Table: table})
			},
			OpenReading: func(t testing.TB) store.Ledger {
				t.Helper()
				return opened(t, Options{URI: uri, Table: table, ReadOnly: true})
			},
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				if len(workerType) > 255 {
					t.Skip("the column of names has 255 bytes")
				}
				if strings.HasSuffix(workerType, "\x00") {
					t.Skip("names that differ in trailing zeros are one key")
				}
				execute(t, fmt.Sprintf("INSERT INTO %s.%s VALUES (@p1, @p2, @p3)", DefaultSchema, table), []byte(workerType), seq,
					string(storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields)))
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				execute(t, fmt.Sprintf("DELETE FROM %[1]s.%[2]s_roster WHERE worker_type = @p1 AND id = @p2; INSERT INTO %[1]s.%[2]s_roster VALUES (@p1, @p2, @p3)", DefaultSchema, table),
					[]byte(workerType), []byte(id), string(storetest.Document(t, map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}, fields)))
			},
			PlantUnique: func(t testing.TB) {
				t.Helper()
				execute(t, fmt.Sprintf("CREATE UNIQUE INDEX planted_unique ON %s.%s (worker_type)", DefaultSchema, table))
			},
			PlantTrigger: func(t testing.TB) {
				t.Helper()
				execute(t, fmt.Sprintf(`CREATE TRIGGER %[1]s.planted_trigger_%[2]s ON %[1]s.%[2]s INSTEAD OF INSERT AS
					INSERT INTO %[1]s.%[2]s SELECT CONVERT(varbinary(255), CONVERT(varchar(36), NEWID())), seq, document FROM inserted`, DefaultSchema, table))
			},
			FreeStamp: true,
			Rounds:    50,
			Skips: map[string]string{
				"watch":     "there are no hints",
				"two paths": "the server has one name here",
				"hostile names from outside/*/plant long *": "the column of names has 255 bytes",
				`hostile names from outside/*/plant *\x00`:  "names that differ in trailing zeros are one key",
			},
		}
	})
}

func TestOfProcessesThatAppendOneKeyExactlyOneWins(t *testing.T) {
	uri, table := named(t), newTable(t)
	uri += map[bool]string{true: "&", false: "?"}[strings.Contains(uri, "?")] + "table=" + table
	initialised(t, Options{URI: uri})
	rounds := 100
	if race.Enabled {
		rounds = 20
	}
	storetest.ProcessRace{At: uri, Processes: 4, Goroutines: 4, Rounds: rounds}.Run(t)
}

// Each cause is planted on the server.
func TestWhatTheServerHasIsRefused(t *testing.T) {
	uri := named(t)
	const columns = "(worker_type varbinary(255) NOT NULL, seq bigint NOT NULL, document nvarchar(max) NOT NULL"
	for says, create := range map[string]string{
		"of the type varchar":        "CREATE TABLE dbo.NAME (worker_type varchar(255) NOT NULL, seq bigint NOT NULL, document nvarchar(max) NOT NULL, PRIMARY KEY (worker_type, seq))",
		"has no primary key":         "CREATE TABLE dbo.NAME " + columns + ")",
		"which can keep records out": "CREATE TABLE dbo.NAME " + columns + ", PRIMARY KEY (worker_type, seq), CHECK (seq < 5))",
		"a unique index besides":     "CREATE TABLE dbo.NAME " + columns + ", PRIMARY KEY (worker_type, seq), UNIQUE (seq))",
		"IGNORE_DUP_KEY":             "CREATE TABLE dbo.NAME " + columns + ", PRIMARY KEY (worker_type, seq) WITH (IGNORE_DUP_KEY = ON))",
		"that is computed":           "CREATE TABLE dbo.NAME " + columns + ", x AS 1 / (seq - 7), PRIMARY KEY (worker_type, seq))",
		"that must not be null":      "CREATE TABLE dbo.NAME " + columns + ", x int NOT NULL, PRIMARY KEY (worker_type, seq))",
		"has triggers":               "CREATE TABLE dbo.NAME " + columns + ", PRIMARY KEY (worker_type, seq));EXEC('CREATE TRIGGER dbo.NAME_trigger ON dbo.NAME AFTER INSERT AS DELETE FROM dbo.NAME')",
		"row-level security": "CREATE TABLE dbo.NAME " + columns + ", PRIMARY KEY (worker_type, seq));" +
			"EXEC('CREATE FUNCTION dbo.NAME_function(@seq bigint) RETURNS TABLE WITH SCHEMABINDING AS RETURN SELECT 1 AS one WHERE @seq < 5');" +
			"EXEC('CREATE SECURITY POLICY dbo.NAME_policy ADD FILTER PREDICATE dbo.NAME_function(seq) ON dbo.NAME WITH (STATE = ON)')",
	} {
		t.Run(says, func(t *testing.T) {
			table := newTable(t)
			execute(t, strings.ReplaceAll(create, "NAME", table))
			l := opened(t, Options{URI: uri, Table: table})
			_, _, err := l.Tail(within(t), "job", 1)
			documenttest.Says(t, "Tail() of a table", err, store.ErrRefused, says)
		})
	}
}

// What is only noticed by the insert itself, since the check was before.
func TestTheInsertNoticesWhatCameAfterTheCheck(t *testing.T) {
	uri := named(t)
	for name, plant := range map[string]string{
		"a trigger": "CREATE TRIGGER dbo.NAME_trigger ON dbo.NAME AFTER INSERT AS DELETE FROM dbo.NAME",
		"a policy": "EXEC('CREATE FUNCTION dbo.NAME_function(@seq bigint) RETURNS TABLE WITH SCHEMABINDING AS RETURN SELECT 1 AS one WHERE @seq < 5');" +
			"EXEC('CREATE SECURITY POLICY dbo.NAME_policy ADD FILTER PREDICATE dbo.NAME_function(seq) ON dbo.NAME WITH (STATE = ON)')",
		"a check": "ALTER TABLE dbo.NAME ADD CHECK (seq < 5)",
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			l := initialised(t, Options{URI: uri, Table: table})
			must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
			execute(t, strings.ReplaceAll(plant, "NAME", table))
			documenttest.Is(t, "Append()", l.Append(within(t), storetest.Grant("job", 7)), store.ErrRefused)
		})
	}
}

func TestALockThatIsHeldForTooLongLeavesNothingStored(t *testing.T) {
	uri, table := named(t), newTable(t)
	l := initialised(t, Options{URI: uri, Table: table})
	tx, err := opened(t, Options{URI: uri}).db.BeginTx(within(t), nil)
	must(t, "BeginTx()", err)
	_, err = tx.ExecContext(within(t), "INSERT INTO dbo."+table+" VALUES (CONVERT(varbinary(255), 'job'), 1, N'{}')")
	must(t, "an insert that isn't committed", err)
	err = l.Append(within(t), storetest.Grant("job", 1))
	if !errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrConflict) {
		t.Errorf("Append() while the key is locked = %v, want that nothing was stored", err)
	}
	must(t, "Rollback()", tx.Rollback())
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	documenttest.Is(t, "Append() of a key that is taken", l.Append(within(t), storetest.Grant("job", 1)), store.ErrConflict)
}

func TestASoundStoreIsFoundSound(t *testing.T) {
	l := initialised(t, Options{URI: named(t), Table: newTable(t)})
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	for _, f := range found {
		if f.Level == store.LevelFail || f.Level == store.LevelSkip {
			t.Errorf("Examine() of a sound store: %+v", f)
		}
	}
	must(t, "CheckRights()", l.CheckRights(within(t)))
	documenttest.Is(t, "CheckRights() before Init()", opened(t, Options{URI: named(t), Table: newTable(t)}).CheckRights(within(t)), store.ErrMissing)
}

// The server takes its key for that of the name without the zero.
func TestARecordUnderANameWithATrailingZeroIsNoneToObey(t *testing.T) {
	table := newTable(t)
	l := initialised(t, Options{URI: named(t), Table: table})
	execute(t, "INSERT INTO dbo."+table+" VALUES (0x6A6F6200, 1, @p1)", string(storetest.Document(t, map[string]any{"workerType": "job", "seq": 1}, storetest.Fields(storetest.Grant("job", 1)))))
	r, err := l.Get(within(t), "job", 1)
	if err != nil || r.CheckEnvelope() == nil {
		t.Errorf("Get() = %+v, %v, want a record whose CheckEnvelope fails", r, err)
	}
	documenttest.Is(t, "Append() of its key", l.Append(within(t), storetest.Grant("job", 1)), store.ErrConflict)
}

// BenchmarkOperations reports what most operations take, and what nearly all do.
func BenchmarkOperations(b *testing.B) {
	documenttest.BenchmarkOperations(b, "named", initialised(b, Options{URI: named(b), Table: newTable(b)}))
}
