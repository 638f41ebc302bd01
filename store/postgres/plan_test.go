package postgres

import (
	"strings"
	"testing"

	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// A table that was restored, or filled within a minute, hasn't been analyzed yet.
func TestATailSortsNothingInATableWithoutStatistics(t *testing.T) {
	t.Parallel()
	uri := postgrespeer.Database(t)
	l, db := initialised(t, Options{URI: uri}), past(t, uri)
	must(t, "Append()", l.Append(t.Context(), storetest.Grant("job", 1)))
	_, err := db.ExecContext(t.Context(), `INSERT INTO worker_leases (worker_type, seq, document)
		SELECT worker_type, n, replace(document::text, '"seq":1,', '"seq":' || n || ',')::json FROM worker_leases, generate_series(2, 100000) n`)
	must(t, "INSERT", err)
	rows, err := db.QueryContext(t.Context(), "EXPLAIN "+strings.NewReplacer("$1", "'job'", "$2", "200").Replace(l.dialect(false).Tail.Text))
	must(t, "EXPLAIN", err)
	defer func() { _ = rows.Close() }()
	var plan []string
	for rows.Next() {
		var line string
		must(t, "Scan()", rows.Scan(&line))
		plan = append(plan, line)
	}
	must(t, "EXPLAIN", rows.Err())
	if text := strings.Join(plan, "\n"); strings.Contains(text, "Sort") || !strings.Contains(text, "Index Scan Backward") {
		t.Errorf("the plan of a tail is\n%s\nwant it to go along the index, without a sort", text)
	}
	records, _, err := l.Tail(t.Context(), "job", 200)
	if err != nil || len(records) != 200 || records[0].Seq != 100_000 || records[199].Seq != 99_801 {
		t.Errorf("Tail(job, 200) = %d records, %v, want those from 100000 to 99801", len(records), err)
	}
}
