package mysql

import (
	"strconv"
	"testing"

	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// With five workers, a lease takes a tail of each, and an append.
func TestALeaseTakesFewStatements(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{})
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs")
	admin := past(t, s.DSN())
	questions := func() int {
		var name, value string
		must(t, "Scan()", admin.QueryRowContext(within(t), "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &value))
		n, err := strconv.Atoi(value)
		must(t, "Atoi()", err)
		return n
	}
	var workers []*Ledger
	for n := range 5 {
		l := opened(t, Options{URI: uriOf(t, s.DSN()+"jobs")})
		if n == 0 {
			must(t, "Init()", l.Init(within(t)))
			must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
		}
		_, _, err := l.Tail(within(t), "job", 2)
		must(t, "Tail()", err)
		must(t, "AppendAfter()", l.AppendAfter(within(t), storetest.Grant("job", int64(n+2)), storetest.Grant("job", int64(n+1))))
		workers = append(workers, l)
	}
	before := questions()
	for _, l := range workers {
		if _, s, err := l.Tail(within(t), "job", 2); err != nil || s.IsZero() {
			t.Errorf("Tail() = %+v, %v, want the time for free", s, err)
		}
	}
	must(t, "AppendAfter()", workers[0].AppendAfter(within(t), storetest.Grant("job", 7), storetest.Grant("job", 6)))
	calls := questions() - before - 1
	t.Logf("a lease takes %d statements", calls)
	if calls > 8 {
		t.Errorf("a lease takes %d statements, want 8 at most", calls)
	}
}
