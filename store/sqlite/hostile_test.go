package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestHostilePlan(t *testing.T) {
	l, _ := inUse(t, Options{})
	db := raw(t, l.o.Path)
	execute(t, db, `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<10000) INSERT INTO WorkerLeases(workerType,seq) SELECT 'job'||i, s.value FROM c, json_each('[1,2,3,4,5,6,7,8,9,10]') s`)
	execute(t, db, `WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<50000) INSERT INTO WorkerLeases(workerType,seq) SELECT 'huge', i FROM c`)
	plan := func(what string) {
		for _, q := range []string{selectTails.text, selectTails.textSchema1} {
			r, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+q, `["job1","huge"]`, int64(store.MaxSeq), 8)
			must(t, "plan", err)
			for r.Next() {
				var a, b, c int
				var s string
				must(t, "Scan", r.Scan(&a, &b, &c, &s))
				t.Log(what, a, b, s)
			}
			r.Close()
		}
		began := time.Now()
		for range 20 {
			l.readTails(t.Context(), []question{{"huge", 8}, {"huge", 8}})
		}
		t.Log(what, "two of the huge type:", time.Since(began)/20)
		many := make([]question, 500)
		for i := range many {
			many[i] = question{fmt.Sprint("job", i+1), 8}
		}
		began = time.Now()
		for range 5 {
			l.readTails(t.Context(), many)
		}
		t.Log(what, "500 of 8:", time.Since(began)/5)
	}
	plan("plain")
	execute(t, db, "ANALYZE")
	db.Close()
	db = raw(t, l.o.Path)
	plan("analyzed")
	for _, s := range []string{"1 1 1", "100000 1 1", "150000 150000 1", "1000000 2 1", "5 5 5 "} {
		execute(t, db, "UPDATE sqlite_stat1 SET stat='"+s+"' WHERE tbl='WorkerLeases'")
		db.Close()
		db = raw(t, l.o.Path)
		must(t, "Append()", l.Append(t.Context(), storetest.Grant("other"+fmt.Sprint(len(s)), 1)))
		l.Close(t.Context())
		l = open(t, Options{Path: l.o.Path})
		_, _, _ = l.Tail(t.Context(), "x", 1)
		plan(s)
	}
}
