//go:build sqlserver

package sqlserver

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/sqldb"
)

var update = flag.Bool("update", false, "rewrite testdata/statements.sql")

// The whole of what is sent to a server, as a script for whoever reviews it, or lets a server parse it (SET PARSEONLY ON).
func TestTheStatementsAreThoseThatWereReviewed(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "sqlserver://worker@db.example/jobs"})
	d := l.dialect()
	types := map[string]string{"@p1": "@p1 nvarchar(63)", "@p2": "@p2 bigint", "@p3": "@p3 bigint"}
	names := map[string]string{"@p1": "@p1 nvarchar(63)", "@p2": "@p2 nvarchar(64)", "@p3": "@p3 nvarchar(max)"}
	rows := map[string]string{"@p1": "@p1 nvarchar(63)", "@p2": "@p2 bigint", "@p3": "@p3 nvarchar(max)", "@p4": "@p4 nvarchar(64)", "@p5": "@p5 nvarchar(64)", "@p6": "@p6 nvarchar(256)"}
	var script strings.Builder
	for _, s := range []struct {
		name, text string
		types      map[string]string
	}{
		{"a new session", settings + marking, nil},
		{"a new session, then", askUpdateability, nil},
		{"init", guard + l.filled(createLedger), nil},
		{"init, then", guard + l.filled(createRoster), nil},
		{"init, by an administrator", l.InitScript(), nil},
		{"append", l.insertion(false), rows},
		{"append above a known record", l.insertion(true), rows},
		{"append, after a conflict", l.presence(), types},
		{"get", d.Get.Text, types},
		{"tail", d.Tail.Text, types},
		{"page", d.Page.Text, types},
		{"trim", d.Trim.Text, types},
		{"worker types", d.WorkerTypes.Text, nil},
		{"now", d.Now.Text, nil},
		{"attend", d.Attend.Text, names},
		{"leave", d.Leave.Text, names},
		{"presences", d.Presences.Text, types},
		{"the check: server", askServer, nil},
		{"the check: database", askDatabase, nil},
		{"the check: availability group", sound().askGroup("00000000-0000-0000-0000-000000000000"), nil},
		{"the check: table", l.of(askTable, l.address.Table), nil},
		{"the check: columns", l.of(askColumns, l.address.Table), nil},
		{"the check: unique indexes", l.of(askIndexes, l.address.Table), nil},
		{"the check: triggers, constraints, policies", l.of(askHooks, l.address.Table), nil},
		{"the check: a table that is unknown", l.filled(askAbsent), nil},
		{"a right", l.askRight(l.address.Table, "INSERT"), nil},
	} {
		fmt.Fprintf(&script, "-- %s\n", s.name)
		for _, p := range []string{"@p1", "@p2", "@p3", "@p4", "@p5", "@p6"} {
			if strings.Contains(s.text, p) {
				fmt.Fprintf(&script, "DECLARE %s;\n", s.types[p])
			}
		}
		fmt.Fprintf(&script, "%s\nGO\n", strings.TrimSpace(s.text))
		for _, part := range []string{"LEDGER", "ROSTER", "TABLE'", "DOCUMENT ", "NAME(@", "MAXSEQ", "CLOCK,", "SERVER"} {
			if strings.Contains(strings.ReplaceAll(s.text, "SERVERPROPERTY", ""), part) {
				t.Errorf("%s has %s, which was to be filled in: %s", s.name, part, s.text)
			}
		}
	}
	const file = "testdata/statements.sql"
	if *update {
		must(t, "WriteFile()", os.WriteFile(file, []byte(script.String()), 0o600))
	}
	want, err := os.ReadFile(file)
	must(t, "ReadFile()", err)
	if got := script.String(); got != string(want) {
		t.Errorf("the statements differ from %s: review them, and run go test -tags sqlserver ./store/sqlserver -update", file)
	}
}

// What stands for a part of a statement may be a part of a table's name.
func TestNamesOfTablesAreNoPartsOfStatements(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "sqlserver://me@127.0.0.1:1/jobs?schema=TABLES&table=LEDGER_RIGHTS_DOCUMENT"})
	const want = "[TABLES].[LEDGER_RIGHTS_DOCUMENT]"
	for _, text := range []string{l.askRight(l.address.Table, "INSERT"), l.of(askTable, l.address.Table), l.presence(), l.insertion(true), l.dialect().Tail.Text} {
		if !strings.Contains(text, want) {
			t.Errorf("a statement on the table %s is %s", want, text)
		}
	}
}

// A number of more than 31 bits is a decimal to the server: https://learn.microsoft.com/sql/t-sql/data-types/int-bigint-smallint-and-tinyint-transact-sql.
// A Seq that is compared with it is converted, so that an index may serve no more.
func TestSeqsAreComparedWithNumbersOfTheirType(t *testing.T) {
	t.Parallel()
	d := opened(t, Options{URI: "sqlserver://me@127.0.0.1:1/jobs"}).dialect()
	most := fmt.Sprint(int64(store.MaxSeq))
	for _, s := range []sqldb.Statement{d.Tail, d.Page, d.Trim} {
		if n := strings.Count(s.Text, most); n == 0 || n != strings.Count(s.Text, "CONVERT(bigint, "+most+")") {
			t.Errorf("a statement compares a Seq with a decimal: %s", s.Text)
		}
	}
}

// Each statement on the ledger's tables is guarded; those that look at the catalog are not, since they say why.
func TestEachStatementOnTheTablesIsGuarded(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "sqlserver://worker@db.example/jobs"})
	d := l.dialect()
	for _, s := range []sqldb.Statement{d.Get, d.Tail, d.Page, d.Trim, d.WorkerTypes, d.Now, d.Attend, d.Leave, d.Presences, {Text: l.insertion(true)}, {Text: l.presence()}} {
		if !strings.HasPrefix(s.Text, guard) {
			t.Errorf("%s has no guard", s.Text)
		}
		for _, hint := range []string{"NOLOCK", "READUNCOMMITTED", "READPAST", "UNCOMMITTED"} {
			if strings.Contains(strings.ToUpper(s.Text), hint) {
				t.Errorf("%s has %s: it would read what isn't committed, or skip rows", s.Text, hint)
			}
		}
	}
}
