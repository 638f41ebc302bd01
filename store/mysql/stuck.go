package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

// An append to a server with semi-synchronous replicas waits until one has acknowledged, perhaps for an hour. When its caller goes,
// it isn't ended: KILL would commit the record, and show it to others before a replica has it. So its connection is kept, as long
// as the server is there, and no more than two of them: the server would otherwise have more and more sessions.
const (
	mostStuck = 2
	// stuckLook is how often the server is asked for such a session, and stuckPatience how long it may take to answer.
	stuckLook     = 5 * time.Second
	stuckPatience = 3 * time.Second
)

// stuck are the appends of a handle that go on although their callers have gone.
type stuck struct {
	mu    sync.Mutex
	n     int
	state string // what they wait for, as the server says
}

// full is the error of an append beside as many as there may be.
func (s *stuck) full() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n < mostStuck {
		return nil
	}
	return storekit.NotStored(fmt.Errorf("%d earlier appends have not been answered%s: a semi-synchronous replica must acknowledge them", s.n, s.state))
}

// add notes one more, or one less.
func (s *stuck) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += n
}

// lasting is an insert that outlasts its caller. It has the connection, and gives it back.
func (l *Ledger) lasting(ctx context.Context, c *sql.Conn, k *conn, insert func(ctx context.Context) error) error {
	done := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() { _ = c.Close() }()
		done <- insert(context.WithoutCancel(ctx))
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	l.stuck.add(1)
	go func() {
		defer l.stuck.add(-1)
		for {
			if !l.lives(k) {
				_ = k.line.Close() // The driver notices.
				<-over
				return
			}
			timer := l.clock.Timer(stuckLook)
			select {
			case <-over:
				timer.Stop()
				return
			case <-timer.C:
			}
		}
	}()
	return ctx.Err()
}

// lives reports whether the server in use has a session still.
func (l *Ledger) lives(k *conn) (yes bool) {
	ctx, cancel := context.WithCancel(l.core.Runner.Life())
	defer cancel()
	defer l.clock.AfterFunc(stuckPatience, cancel).Stop()
	c, err := l.db.Conn(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	err = sqldb.Each(ctx, c, func(rows *sql.Rows) error {
		var server, state sql.NullString
		err := rows.Scan(&server, &state)
		if yes = err == nil && server.String == k.process && state.Valid; yes {
			l.stuck.mu.Lock()
			l.stuck.state = fmt.Sprintf(", whose sessions are in the state %.60q", state.String)
			l.stuck.mu.Unlock()
		}
		return err
	}, l.filled(`SELECT SERVER, (SELECT COALESCE(STATE, '') FROM information_schema.PROCESSLIST WHERE ID = ?) FROM DUAL`), k.session)
	return yes && err == nil
}
