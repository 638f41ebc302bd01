package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var must = documenttest.Must

var within = suites.Deadline

// opened opens a ledger that is closed with the test.
func opened(t testing.TB, o Options) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open(%s) = %v, want a ledger", Redact(o.URI), err)
	}
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l
}

// initialised is an opened ledger that is initialised.
func initialised(t testing.TB, o Options) *Ledger {
	t.Helper()
	l := opened(t, o)
	must(t, "Init()", l.Init(within(t)))
	return l
}

var granting sync.Mutex

// shared is a pool of connections past the ledgers, to the database of each URI.
var shared sync.Map

// past is a pool past the ledgers.
func past(t testing.TB, uri string) *sql.DB {
	t.Helper()
	fresh, err := sql.Open("pgx", uri+"&client_encoding=UTF8")
	must(t, "Open()", err)
	fresh.SetMaxOpenConns(8)
	db, _ := shared.LoadOrStore(uri, fresh)
	return db.(*sql.DB)
}

// execute executes a statement past the ledger.
func execute(t testing.TB, uri, text string, args ...any) {
	t.Helper()
	_, err := past(t, uri).ExecContext(context.WithoutCancel(t.Context()), text, args...)
	must(t, text, err)
}

var newTable = documenttest.NewTable

// nulls are what no table can hold.
var nulls = map[string]string{
	"hostile names from outside/*/plant *\\x00*": "no text of PostgreSQL has a NUL",
}

// A worker that has the rights it needs, and no others, in tables that an administrator has made by psql.
func TestConformance(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Shared(t)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		table := newTable()
		h := harness(uri, uri, table, 100)
		var worker string
		h.InitFirst = func(t testing.TB) {
			t.Helper()
			worker = postgrespeer.Role(t, uri)
			granting.Lock() // PostgreSQL fails one of two that grant rights on a schema at a time.
			defer granting.Unlock()
			postgrespeer.Exec(t, uri, opened(t, Options{URI: worker, Table: table}).InitScript())
		}
		h.Open = func(t testing.TB) store.Ledger {
			t.Helper()
			return opened(t, Options{URI: cmp.Or(worker, uri), Table: table})
		}
		h.OpenElsewhere = func(t testing.TB) (store.Ledger, error) {
			t.Helper()
			return Open(t.Context(), Options{URI: strings.Replace(uri, "127.0.0.1", "localhost", 1), Table: table})
		}
		return h
	})
}

// odd are settings with which sessions may come.
var odd = []string{
	"synchronous_commit = off", "client_min_messages = error", "search_path = ''", "timezone = 'Pacific/Chatham'", "datestyle = 'German, DMY'", "client_encoding = LATIN1",
	"standard_conforming_strings = off", "bytea_output = escape", "extra_float_digits = -10", "enable_indexscan = off", "row_security = off", "plan_cache_mode = force_generic_plan",
}

// Behind a pooler, each statement may go to another process of the server, whose session has settings of its own.
func TestConformanceBehindAPooler(t *testing.T) {
	suites.SecondPath(t)
	t.Parallel()
	direct := postgrespeer.Database(t)
	name, _, _ := strings.Cut(direct[strings.LastIndexByte(direct, '/')+1:], "?")
	for _, setting := range odd {
		execute(t, postgrespeer.Shared(t), "ALTER DATABASE "+name+" SET "+setting)
	}
	uri := postgrespeer.Pooler(t, direct, "transaction")
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		h := harness(uri, direct, newTable(), 20)
		h.OpenElsewhere = func(t testing.TB) (store.Ledger, error) {
			t.Helper()
			return Open(t.Context(), Options{URI: direct, Table: h.Open(t).(*Ledger).address.Table})
		}
		h.Skips = maps.Clone(nulls)
		h.Skips["watch"], h.Skips["append after/a hint comes after a release, too"] = "behind a pooler there are no hints", "behind a pooler there are no hints"
		return h
	})
}

// harness is one on an empty table of a database that direct reaches past the ledger.
func harness(uri, direct, table string, rounds int) storetest.Harness {
	o := Options{URI: uri, Table: table}
	reading := ""
	return storetest.Harness{
		Open: func(t testing.TB) store.Ledger {
			t.Helper()
			return opened(t, o)
		},
		OpenReading: func(t testing.TB) store.Ledger {
			t.Helper()
			if reading == "" {
				reading = postgrespeer.Role(t, direct, fmt.Sprintf("SELECT ON public.%s, public.%s_roster", table, table))
			}
			return opened(t, Options{URI: reading, Table: table})
		},
		Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
			t.Helper()
			if strings.ContainsRune(workerType, 0) {
				t.Skip("no text of PostgreSQL has a NUL")
			}
			execute(t, direct, fmt.Sprintf(`INSERT INTO public.%s VALUES ($1, $2, $3::text::json)`, table),
				workerType, seq, string(storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields)))
		},
		PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
			t.Helper()
			execute(t, direct, fmt.Sprintf(`INSERT INTO public.%s_roster VALUES ($1, $2, $3::text::json) ON CONFLICT (worker_type, id) DO UPDATE SET document = excluded.document`, table),
				workerType, id, string(storetest.Document(t, map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}, fields)))
		},
		PlantUnique: func(t testing.TB) {
			t.Helper()
			execute(t, direct, fmt.Sprintf(`CREATE UNIQUE INDEX planted_unique_%[1]s ON public.%[1]s (worker_type)`, table))
		},
		PlantTrigger: func(t testing.TB) {
			t.Helper()
			execute(t, direct, fmt.Sprintf(`CREATE FUNCTION public.dropped_%s() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`, table))
			execute(t, direct, fmt.Sprintf(`CREATE TRIGGER planted_trigger BEFORE INSERT ON public.%[1]s FOR EACH ROW EXECUTE FUNCTION public.dropped_%[1]s()`, table))
		},
		FreeStamp: true,
		Rounds:    rounds,
		Skips:     nulls,
	}
}
