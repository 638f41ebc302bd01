package mysql

import (
	"context"
	"testing"

	"github.com/slotlease/slotlease/internal/parallel"
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestMain(m *testing.M) {
	storetest.PlayContender(func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) })
	parallel.Waiting() // for servers that don't answer
	m.Run()
}

func TestOfProcessesThatAppendOneKeyExactlyOneWins(t *testing.T) {
	t.Parallel()
	uri := uriOf(t, mysqlpeer.Database(t)) + "?table=" + newTable()
	initialised(t, Options{URI: uri})
	rounds := 100
	if race.Enabled {
		rounds = 20
	}
	storetest.ProcessRace{At: uri, Processes: 4, Goroutines: 4, Rounds: rounds}.Run(t)
}

// Somebody locks the table, or has inserted the key and doesn't commit.
func TestNoStatementWaitsForALockForLong(t *testing.T) {
	t.Parallel()
	dsn := mysqlpeer.Database(t)
	l := initialised(t, Options{URI: uriOf(t, dsn)})
	for what, locks := range map[string][]string{
		"a table": {"LOCK TABLES worker_leases WRITE"},
		"a row":   {"BEGIN", "INSERT INTO worker_leases VALUES ('job', 1, '{}')"},
	} {
		held, err := past(t, dsn).Conn(within(t))
		must(t, "Conn()", err)
		for _, text := range locks {
			_, err = held.ExecContext(within(t), text)
			must(t, text, err)
		}
		wantOutcome(t, "Append() beside a lock of "+what, l.Append(within(t), storetest.Grant("job", 1)), outcome{nil, true}, "has held a lock on")
		_, err = held.ExecContext(within(t), "ROLLBACK")
		must(t, "ROLLBACK", err)
		_, err = held.ExecContext(within(t), "UNLOCK TABLES")
		must(t, "UNLOCK TABLES", err)
		must(t, "Close()", held.Close())
	}
	must(t, "Append() without a lock", l.Append(within(t), storetest.Grant("job", 1)))
}
