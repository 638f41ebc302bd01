package sqldb

import (
	"database/sql"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

const (
	// idleBurst is how long a pool keeps the connections of a burst of operations, so that bursts that come in each slot
	// don't open them anew, and idleLast how long it keeps the last one.
	idleBurst = 5 * time.Second
	idleLast  = time.Minute
)

// Idle lets go of the connections of a pool that aren't used: all but one 5 s after the last operation, and that after a minute.
// A server has few connections, and many processes, each with many worker types, use them at the boundaries of slots alone.
type Idle struct {
	db   *sql.DB
	most int

	mu    sync.Mutex
	timer *clock.Timer
	next  time.Time
	clock clock.Clock
}

// KeepFewIdle bounds the connections of a pool, and those that are idle.
func KeepFewIdle(db *sql.DB, most int, c clock.Clock) *Idle {
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	db.SetConnMaxIdleTime(idleLast)
	return &Idle{db: db, most: most, clock: c}
}

// Used notes an operation.
func (i *Idle) Used() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.next = i.clock.Now().Add(idleBurst)
	if i.timer == nil {
		i.timer = i.clock.AfterFunc(idleBurst, i.due)
	}
}

// due closes what is idle, unless there was an operation meanwhile.
func (i *Idle) due() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if left := i.next.Sub(i.clock.Now()); left > 0 {
		i.timer = i.clock.AfterFunc(left, i.due)
		return
	}
	i.timer = nil
	i.db.SetMaxIdleConns(1)
	i.db.SetMaxIdleConns(i.most)
}
