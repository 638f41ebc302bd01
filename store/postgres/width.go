package postgres

import "time"

// One connection does for all statements of a handle, one after the other, as long as none takes long: a server has few to
// give, and each that is made anew costs it more than many statements. Once one takes long, others don't wait for it: there may be
// one connection more for a while.
const (
	slow = 100 * time.Millisecond
	wide = 10 * time.Second
	// crowded is how long a statement may have waited for the connection until others needn't: many worker types begin their slots at
	// once, and to a server far away each statement takes a while, though none takes long.
	crowded = 300 * time.Millisecond
)

// waited lets statements use one connection more if the one that has just got one had waited for long. The pool counts a wait when it
// begins, and its time when it ends: so the time alone says how long this one took, and with it any that ended at the same moment.
func (l *Ledger) waited() {
	total := l.db.Stats().WaitDuration
	l.width.Lock()
	waited := total - l.waitTime
	l.waitTime = total
	l.width.Unlock()
	if waited > crowded {
		l.widen()
	}
}

// patient lets others wait for what begins now, unless it takes long. The function that it returns is called at the end.
func (l *Ledger) patient() (end func()) {
	var late, over bool
	timer := l.clock.AfterFunc(slow, func() {
		l.width.Lock()
		if late = !over; late {
			l.lasting++
		}
		l.width.Unlock()
		if late {
			l.widen()
		}
	})
	return func() {
		timer.Stop()
		l.width.Lock()
		defer l.width.Unlock()
		if late && !over {
			l.lasting--
		}
		over = true
	}
}

// widen lets statements use one connection more, for some time from now on.
func (l *Ledger) widen() {
	if l.core.Lender != nil {
		return // The application's pool has its own bound.
	}
	l.width.Lock()
	defer l.width.Unlock()
	if l.narrowing != nil {
		l.narrowing.Stop()
	}
	l.setWidth(min(l.db.Stats().MaxOpenConnections+1, l.address.MaxConns))
	l.narrowing = l.clock.AfterFunc(wide, l.narrow)
	if !l.priming && l.core.Runner.Running() > l.db.Stats().InUse {
		// Those that wait already go on waiting for a connection that is there. So one is made for them.
		l.priming = true
		go func() {
			if c, err := l.db.Conn(l.core.Runner.Life()); err == nil {
				_ = c.Close()
			}
			l.width.Lock()
			defer l.width.Unlock()
			l.priming = false
		}()
	}
}

// narrow leaves statements one connection beside those that take long.
func (l *Ledger) narrow() {
	l.width.Lock()
	defer l.width.Unlock()
	l.setWidth(min(1+l.lasting, l.address.MaxConns))
	if l.lasting > 0 {
		l.narrowing = l.clock.AfterFunc(wide, l.narrow)
	}
}

// setWidth bounds the connections, of which none is closed for being idle among the others.
func (l *Ledger) setWidth(n int) {
	l.db.SetMaxOpenConns(n)
	l.db.SetMaxIdleConns(n)
}
