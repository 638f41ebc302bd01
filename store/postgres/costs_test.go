package postgres

import (
	"testing"

	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// With five workers, a lease takes a tail of each, and an append.
func TestALeaseTakesFewStatements(t *testing.T) {
	t.Parallel()
	s := postgrespeer.Start(t, postgrespeer.Options{Settings: []string{"shared_preload_libraries=pg_stat_statements"}})
	admin := past(t, s.URI())
	execute(t, s.URI(), `CREATE EXTENSION pg_stat_statements`)
	var workers []*Ledger
	for n := range 5 {
		l := opened(t, Options{URI: s.URI()})
		if n == 0 {
			must(t, "Init()", l.Init(within(t)))
			must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
		}
		_, _, err := l.Tail(within(t), "job", 2)
		must(t, "Tail()", err)
		must(t, "AppendAfter()", l.AppendAfter(within(t), storetest.Grant("job", int64(n+2)), storetest.Grant("job", int64(n+1))))
		workers = append(workers, l)
	}
	execute(t, s.URI(), `SELECT pg_stat_statements_reset()`)
	for _, l := range workers {
		if _, s, err := l.Tail(within(t), "job", 2); err != nil || s.IsZero() {
			t.Errorf("Tail() = %+v, %v, want the time for free", s, err)
		}
	}
	must(t, "AppendAfter()", workers[0].AppendAfter(within(t), storetest.Grant("job", 7), storetest.Grant("job", 6)))
	var calls int
	var ms float64
	must(t, "Scan()", admin.QueryRowContext(within(t), `SELECT sum(calls), sum(total_exec_time) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'`).Scan(&calls, &ms))
	t.Logf("a lease takes %d statements, which take the server %.2f ms", calls, ms)
	if calls > 6 {
		t.Errorf("a lease takes %d statements, want 6 at most, the least there can be", calls)
	}
}
