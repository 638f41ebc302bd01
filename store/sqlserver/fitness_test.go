//go:build sqlserver

package sqlserver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// sound are the facts of a server of its own that nothing is wrong with.
func sound() *facts {
	f := &facts{
		Common: sqldb.Common{Server: "db1 since 2026-11-24T08:00:00.123", User: "worker"},
		values: map[string]string{
			valueEdition: "3", valueVersion: "16.0.4135.4", valueBanner: "Microsoft SQL Server 2022", valueUser: "worker", valueDatabase: "jobs", valueUpdate: "READ_WRITE",
			valueDelayed: "DISABLED", valueSnapshot: "0", valuePageVerify: "CHECKSUM", valueGroup: "",
		},
	}
	f.table = soundTable()
	f.Ledger, f.Roster = &f.table.Relation, &soundTable().Relation
	return f
}

// soundTable is a table as Init makes it.
func soundTable() *relation {
	r := &relation{schema: "dbo", name: "worker_leases"}
	for _, row := range columnRows {
		r.Columns = append(r.Columns, columnOf(row))
	}
	r.index(indexRows)
	return r
}

// What a server says of the columns and the key of such a table.
var (
	columnRows = [][]string{{"worker_type", "varbinary", "255", "", "1"}, {"seq", "bigint", "8", "", "1"}, {"document", "nvarchar", "-1", "", "1"}}
	indexRows  = [][]string{{"pk_worker_leases", "1", "0", "0", "worker_type"}, {"pk_worker_leases", "1", "0", "0", "seq"}}
)

// column is a change of a column.
func column(n int, row ...string) func(f *facts) {
	return func(f *facts) { f.Ledger.Columns[n] = columnOf(row) }
}

// another adds a column.
func another(row ...string) func(f *facts) {
	return func(f *facts) { f.Ledger.Columns = append(f.Ledger.Columns, columnOf(row)) }
}

// indexed lets the table have other unique indexes.
func indexed(rows ...[]string) func(f *facts) {
	return func(f *facts) { f.Ledger.Indexes, f.table.key = nil, ""; f.table.index(rows) }
}

// with are sound facts of which one value is another.
func with(name, value string) func(f *facts) { return func(f *facts) { f.values[name] = value } }

// all are both.
func all(changes ...func(f *facts)) func(f *facts) {
	return func(f *facts) {
		for _, change := range changes {
			change(f)
		}
	}
}

func TestWhatADatabaseIsRefusedFor(t *testing.T) {
	t.Parallel()
	for says, spoil := range map[string]func(f *facts){
		"engine edition 6":            with(valueEdition, "6"),
		"engine edition 11":           with(valueEdition, "11"),
		"engine edition )":            with(valueEdition, ""),
		"Babelfish":                   with(valueBanner, "Babelfish for PostgreSQL with SQL Server Compatibility"),
		"SQL Server 2016 or later":    with(valueVersion, "12.0.6024.0"),
		"the version ":                with(valueVersion, "x"),
		"Updateability is READ_ONLY":  with(valueUpdate, "READ_ONLY"),
		"Updateability is )":          with(valueUpdate, ""),
		"DELAYED_DURABILITY = FORCED": with(valueDelayed, "FORCED"),
		"the database is tempdb":      with(valueDatabase, "tempdb"),
		"is a view":                   func(f *facts) { f.Ledger.Kind = "view" },
		"is a synonym":                func(f *facts) { f.Ledger.Kind = "synonym" },
		"memory-optimized":            func(f *facts) { f.table.kinds = "memory-optimized" },
		"external":                    func(f *facts) { f.table.kinds = "external" },

		"row-level security policies":                func(f *facts) { f.table.policies = []string{"p"} },
		"of the type varchar(255)":                   column(0, "worker_type", "varchar", "255", "", "1"),
		"of the type varbinary(62)":                  column(0, "worker_type", "varbinary", "62", "", "1"),
		"column seq of the type int":                 column(1, "seq", "int", "4", "", "1"),
		"document of the type nvarchar(4000)":        column(2, "document", "nvarchar", "4000", "", "1"),
		"document of the type varchar(-1)":           column(2, "document", "varchar", "-1", "", "1"),
		"document, which is masked":                  column(2, "document", "nvarchar", "-1", " masked", "1"),
		"worker_type, which is encrypted":            column(0, "worker_type", "varbinary", "255", " encrypted", "1"),
		"seq, which is identity":                     column(1, "seq", "bigint", "8", " identity", "1"),
		"has no primary key (worker_type, seq)":      indexed([]string{"pk", "1", "0", "0", "seq"}, []string{"pk", "1", "0", "0", "worker_type"}),
		"has no primary key (worker_type, seq) ":     indexed(append(slices.Clone(indexRows), []string{"pk_worker_leases", "1", "0", "0", "region"})...),
		"has no primary key (worker_type, seq)  ":    indexed(),
		"is disabled":                                indexed([]string{"pk", "1", "0", "1", "worker_type"}, []string{"pk", "1", "0", "1", "seq"}),
		"IGNORE_DUP_KEY":                             indexed([]string{"pk", "1", "1", "0", "worker_type"}, []string{"pk", "1", "1", "0", "seq"}),
		"a unique index besides its key, which keep": indexed(append(slices.Clone(indexRows), []string{"ix", "0", "0", "0", "worker_type"})...),
	} {
		l := opened(t, Options{URI: "sqlserver://me@127.0.0.1:1/jobs"})
		f := sound()
		spoil(f)
		err := l.core.Judge(t.Context(), f)
		documenttest.Says(t, says, err, store.ErrRefused, strings.TrimRight(says, " "))
		if l.core.Known() != nil {
			t.Errorf("a database that is refused (%s) counts as known", says)
		}
		if flaw, ok := errors.AsType[storekit.Flaw](err); !ok || flaw.Remedy == "" || flaw.Check == "" {
			t.Errorf("a refusal (%s) = %+v, want a remedy", says, flaw)
		}
	}
}

func TestWhatADatabaseIsNotRefusedFor(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *facts){
		"nothing":                    func(*facts) {},
		"snapshots":                  with(valueSnapshot, "1"),
		"durability that may be let": with(valueDelayed, "ALLOWED"),
		"SQL Server 2016":            with(valueVersion, "13.0.1601.5"),
		"Azure, of version 12":       all(with(valueEdition, "5"), with(valueVersion, "12.0.2000.8")),
		"a managed instance":         all(with(valueEdition, "8"), with(valueVersion, "12.0.2000.8")),
		"a failover cluster":         with(valueClustered, "1"),
		"an index that is disabled":  indexed(append(slices.Clone(indexRows), []string{"ix", "0", "0", "1", "worker_type"})...),
		"an identity of others":      another("n", "bigint", "8", " identity", "0"),
		"a wider column":             column(0, "worker_type", "varbinary", "900", "", "1"),
		"an availability group":      with(valueGroup, "6f1b3f1e-0000-0000-0000-000000000000"),
	} {
		l := opened(t, Options{URI: "sqlserver://me@127.0.0.1:1/jobs"})
		f := sound()
		change(f)
		if err := l.core.Judge(t.Context(), f); err != nil || l.core.Known() != f {
			t.Errorf("Judge() of a database with %s = %v, want nil", name, err)
		}
		shared := slices.Contains([]string{"Azure, of version 12", "a managed instance", "a failover cluster", "an availability group"}, name)
		want := map[bool]string{true: "100ms", false: "0s"}[shared]
		documenttest.Equal(t, "the skew with "+name, l.core.Skew().String(), want)
	}
}

// rowsOf answers the statements of lookOn, as a server does.
func rowsOf(l *Ledger) map[string][][]string {
	return map[string][][]string{
		askServer:                         {{"3", "16.0.4135.4", "Microsoft SQL Server 2022", "worker", "jobs", "READ_WRITE", "0", "db1 since 2026-11-24T08:00:00.123"}},
		askDatabase:                       {{"DISABLED", "0", "CHECKSUM", ""}},
		l.of(askTable, "worker_leases"):   {{"dbo", "worker_leases", "USER_TABLE", ""}},
		l.of(askColumns, "worker_leases"): columnRows,
		l.of(askIndexes, "worker_leases"): indexRows,
	}
}

// answers lets lookOn read rows by statement.
func answers(rows map[string][][]string, failing map[string]error) asking {
	return func(_ context.Context, text string) ([][]string, error) { return rows[text], failing[text] }
}

func TestFactsAreReadFromTheCatalog(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "sqlserver://me@127.0.0.1:1/jobs"})
	rows := rowsOf(l)
	f, err := l.lookOn(t.Context(), answers(rows, nil))
	must(t, "lookOn()", err)
	if f.Roster != nil || f.Ledger == nil || len(l.core.TableFlaws(f)) > 0 || f.table.key != "pk_worker_leases" || f.Server != "db1 since 2026-11-24T08:00:00.123" {
		t.Errorf("lookOn() = %+v with %+v, want a sound table, and no roster", f, f.Ledger)
	}
	const group = "6f1b3f1e-0000-0000-0000-000000000000"
	rows = maps.Clone(rows)
	rows[askDatabase] = [][]string{{"DISABLED", "1", "CHECKSUM", group}}
	askOfGroup := f.askGroup(group)
	rows[askOfGroup] = [][]string{{"db1", "SYNCHRONOUS_COMMIT", "AUTOMATIC", "1"}, {"db2", "ASYNCHRONOUS_COMMIT", "MANUAL", "1"}}
	rows[l.of(askHooks, "worker_leases")] = [][]string{{"constraint", "ck"}, {"policy", "p"}, {"trigger", "tr"}}
	rows[l.of(askIndexes, "worker_leases")] = append(rows[l.of(askIndexes, "worker_leases")], []string{"ix", "0", "1", "0", "document"})
	f, err = l.lookOn(t.Context(), answers(rows, nil))
	must(t, "lookOn()", err)
	if !slices.Equal(f.asynchronous(), []string{"db2"}) || f.alone() || !f.several() || len(f.Ledger.Indexes) != 2 ||
		!slices.Equal(f.Ledger.Triggers, []string{"tr"}) || !slices.Equal(f.Ledger.Constraints, []string{"ck"}) || !slices.Equal(f.table.policies, []string{"p"}) {
		t.Errorf("lookOn() = %+v with %+v, want the group's replicas, and what hangs on the table", f, f.Ledger)
	}
	// SQL Server 2016 has no column for how many replicas must commit.
	old := maps.Clone(rows)
	old[askServer] = [][]string{slices.Clone(rows[askServer][0])}
	old[askServer][0][1] = "13.0.7000.253"
	old[strings.Replace(askOfGroup, "CONVERT(nvarchar(10), g.required_synchronized_secondaries_to_commit)", "N'0'", 1)] = [][]string{{"db1", "SYNCHRONOUS_COMMIT", "AUTOMATIC", "0"}}
	f, err = l.lookOn(t.Context(), answers(old, map[string]error{askOfGroup: said(207, 16, "Invalid column name 'required_synchronized_secondaries_to_commit'.")}))
	if err != nil || len(f.copies) != 1 || !f.alone() {
		t.Errorf("lookOn() of SQL Server 2016 = %+v, %v, want one replica", f, err)
	}
	// The user may not see the group's replicas.
	f, err = l.lookOn(t.Context(), answers(rows, map[string]error{askOfGroup: said(300, 14, "VIEW ANY DEFINITION permission was denied")}))
	if err != nil || len(f.copies) != 0 {
		t.Errorf("lookOn() without a right to see replicas = %+v, %v, want none", f, err)
	}
	if _, err := l.lookOn(t.Context(), answers(rows, map[string]error{askOfGroup: said(156, 15, "Incorrect syntax near the keyword 'd'.")})); err == nil {
		t.Error("lookOn() with a statement that the server can't parse = nil, want an error")
	}
	for _, text := range slices.Sorted(maps.Keys(rows)) {
		if _, err := l.lookOn(t.Context(), answers(rows, map[string]error{text: errors.New("broken")})); err == nil {
			t.Errorf("lookOn() of a connection that breaks at %s = nil, want an error", text)
		}
	}
	rows[askServer] = nil
	if _, err := l.lookOn(t.Context(), answers(rows, nil)); err == nil {
		t.Error("lookOn() of a server that doesn't answer = nil, want an error")
	}
}

// The server's error names the table alone.
func TestTheErrorOfAnAppendNamesTheTriggersThatAreThere(t *testing.T) {
	t.Parallel()
	l := ready(t)
	rows := rowsOf(l)
	rows[l.of(askHooks, "worker_leases")] = [][]string{{"trigger", "audit"}, {"trigger", "copy"}}
	refused := said(codeTriggered, 16, "The target table 'dbo.worker_leases' of the DML statement cannot have any enabled triggers")
	err := l.nameTriggers(t.Context(), answers(rows, nil), refused)
	if m := l.meaning(err); !errors.Is(m.Is, store.ErrRefused) || !m.NotStored || !strings.Contains(m.Text, "audit, copy") {
		t.Errorf("the meaning of %v is %+v, want a refusal that names them", err, m)
	}
	for name, ask := range map[string]asking{
		"none that the user may know": answers(rowsOf(l), nil),
		"an error":                    answers(rows, map[string]error{l.of(askHooks, "worker_leases"): errors.New("broken")}),
	} {
		if err := l.nameTriggers(t.Context(), ask, refused); err.Error() != refused.Error() {
			t.Errorf("with %s the error is %v, want the server's", name, err)
		}
	}
}

// tableFlawsOf are the flaws of the ledger's table.

func TestWhatSurvives(t *testing.T) {
	t.Parallel()
	copies := func(modes ...string) func(f *facts) {
		return func(f *facts) {
			f.values[valueGroup] = "6f1b3f1e-0000-0000-0000-000000000000"
			for _, mode := range modes {
				f.copies = append(f.copies, replica{"db" + mode, mode, "MANUAL"})
			}
		}
	}
	for name, c := range map[string]struct {
		change   func(f *facts)
		failover string
		flaw     string
	}{
		"one server":                        {func(*facts) {}, "There is no failover that is known of", ""},
		"pages that aren't checked":         {with(valuePageVerify, "NONE"), "There is no failover", "PAGE_VERIFY is NONE"},
		"a failover cluster":                {with(valueClustered, "1"), "the same disks", ""},
		"a cluster's group":                 {all(copies("SYNCHRONOUS_COMMIT"), with(valueClustered, "1")), "goes on alone", "goes on alone"},
		"replicas that nobody may see":      {copies(), "may not know the availability group's replicas", "isn't known"},
		"an asynchronous replica":           {copies("SYNCHRONOUS_COMMIT", "ASYNCHRONOUS_COMMIT"), "commits asynchronously", "dbASYNCHRONOUS_COMMIT"},
		"a primary that goes on alone":      {copies("SYNCHRONOUS_COMMIT", "SYNCHRONOUS_COMMIT"), "goes on alone", "goes on alone"},
		"a primary that waits for replicas": {all(copies("SYNCHRONOUS_COMMIT"), with(valueGroupCommit, "1")), "At least 1 of the synchronous replicas", ""},
		"Azure":                             {all(with(valueEdition, "5"), with(valueGroup, "x")), "a majority of the copies", ""},
		"a managed instance":                {with(valueEdition, "8"), "a majority of the copies", ""},
	} {
		l := opened(t, Options{URI: "sqlserver://me@127.0.0.1:1/jobs"})
		for _, text := range []string{l.Durability().Crash, l.Durability().Power, l.Durability().Failover} {
			if !strings.HasPrefix(text, "Not known before") || !strings.HasSuffix(text, untested) {
				t.Errorf("Durability() before the first use = %q, want that nothing is known", text)
			}
		}
		f := sound()
		c.change(f)
		must(t, "judge()", l.core.Judge(t.Context(), f))
		d := l.Durability()
		if !strings.Contains(d.Failover, c.failover) {
			t.Errorf("Durability() with %s = %+v, want %q", name, d, c.failover)
		}
		for _, text := range []string{d.Crash, d.Power, d.Failover} {
			if !strings.HasSuffix(text, untested) {
				t.Errorf("Durability() with %s = %q, want that it is untested", name, text)
			}
		}
		if got := l.Warning(); (got == "") != (c.flaw == "") || !strings.Contains(got, c.flaw) {
			t.Errorf("Warning() with %s = %q, want %q", name, got, c.flaw)
		}
	}
}
