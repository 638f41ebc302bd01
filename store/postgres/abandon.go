package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// A statement whose caller has gone goes on in the server, and waits there for a lock or for a synchronous standby. Without a
// pooler the driver lets the server end it. With one the driver can't, see errNoCancel. Then the connection is kept, and so
// the pooler gives its place in the server to nobody else, and the server is asked over another connection to end
// the statement, which it is known by. It is given up once the server doesn't execute it: the connection may be lost, or the
// statement wait in the pooler.
const (
	// linger bounds how long the connection is kept, and endPatience the request, which is repeated every endAgain.
	linger      = time.Minute
	endPatience = 2 * time.Second
	endAgain    = time.Second
	// mostUnfound is how often the server is asked for a statement that it doesn't execute: it may be on its way.
	mostUnfound = 2
)

// ending marks the context of such a request.
type ending struct{}

// nameStatement is a comment that no other statement begins with.
func (l *Ledger) nameStatement() string {
	return fmt.Sprintf("/* slotlease %s.%d */ ", l.name, l.statements.Add(1))
}

// endings ends a statement that a process of this user executes.
var endings = sync.OnceValue(func() string {
	return catalogued(`SELECT pg_cancel_backend(a.pid) FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND a.state = 'active' AND strpos(a.query, $1::text) = 1`)
})

// endStatement ends a statement, unless it is over, or gives it up.
func (l *Ledger) endStatement(over context.Context, name string, giveUp func()) {
	l.widen()
	for unfound := 0; over.Err() == nil; {
		switch found, err := l.askToEnd(name); {
		case found:
			unfound = 0
		case err == nil:
			if unfound++; unfound == mostUnfound {
				giveUp()
				return
			}
		}
		timer := l.clock.Timer(endAgain)
		select {
		case <-timer.C:
		case <-over.Done():
			timer.Stop()
		}
	}
}

// askToEnd asks the server to end it, and reports whether it was executing it.
func (l *Ledger) askToEnd(name string) (found bool, err error) {
	ctx, cancel := context.WithCancel(context.WithValue(l.core.Runner.Life(), ending{}, true))
	defer cancel()
	defer l.clock.AfterFunc(endPatience, cancel).Stop()
	err = sqldb.Each(ctx, l.aside, func(*sql.Rows) error { found = true; return nil }, endings(), name)
	return found, err
}

// waitsFor is what statements may wait for, beside locks.
func (l *Ledger) waitsFor() string {
	if f := l.core.Known(); f != nil && f.SyncNames != "" {
		return fmt.Sprintf("commits may wait for a synchronous standby (synchronous_standby_names is %.200s)", f.SyncNames)
	}
	return ""
}
