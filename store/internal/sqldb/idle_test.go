package sqldb

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/suites"
)

func TestABurstLeavesOneConnection(t *testing.T) {
	t.Parallel()
	db := sql.OpenDB(&theirs{})
	defer func() { _ = db.Close() }()
	c := clock.NewMock()
	idle := KeepFewIdle(db, 3, c)
	for range 2 {
		var used []*sql.Conn
		for range 3 {
			one, err := db.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			idle.Used()
			used = append(used, one)
		}
		for _, one := range used {
			_ = one.Close()
		}
		c.Add(idleBurst - time.Millisecond)
		idle.Used()
		c.Add(idleBurst - time.Millisecond)
		if got := db.Stats().OpenConnections; got != 3 {
			t.Errorf("%d connections are open during a burst, want 3", got)
		}
		c.Add(time.Millisecond)
		// The mock clock calls on a goroutine.
		suites.Eventually(t, "one connection is open after a burst", func() bool { return db.Stats().OpenConnections == 1 })
	}
}
