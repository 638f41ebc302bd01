package redis

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/position"
)

// time is what the server's clock said.
func (s server) time() (time.Time, error) {
	us, err := strconv.ParseInt(s.micros, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("odd time %.40q: %w", s.micros, err)
	}
	return time.UnixMicro(us).UTC(), nil
}

// stamp is a reading of the server's clock, which was asked for at sent, with the line of changes that it follows.
func (l *Ledger) stamp(addr string, about server, sent time.Time) (store.Stamp, error) {
	at, err := about.time()
	if err != nil {
		return store.Stamp{}, err
	}
	s := store.Stamp{Time: at, Granularity: time.Microsecond, Skew: l.skew(), Server: addr}
	if name := l.line.follow(about, sent, l.clock.Now()); l.mayLose() {
		s.History = name
	}
	return s, nil
}

// skew is that of stamps: what is assumed, or what the newest check has measured if that is surely more.
func (l *Ledger) skew() time.Duration {
	assumed := l.assumed()
	if f := l.surveyed.Load(); f != nil && assumed > 0 {
		return f.clocks.Skew(assumed)
	}
	return assumed
}

// assumed is how far the clocks of servers that may have the ledger one after another are taken to be apart.
func (l *Ledger) assumed() time.Duration {
	switch {
	case l.address.skew > 0:
		return l.address.skew
	case l.mayTakeOver():
		return DefaultSkew
	}
	return 0
}

// lineKept is how long a server surely remembers that it was a replica: less than the default of its repl-backlog-ttl.
const lineKept = 30 * time.Minute

// line names the line of changes that a server goes on with, as replid does. But that changes, too, when the first replica comes, or a
// backup is made (redis-cli --rdb), and an hour after the last is gone. Then it is the same process, which was no replica since. If a
// process keeps both, but its offset is lower than before, its machine was restored from a snapshot.
// Without a replica the offset may stay 0, and shows nothing.
type line struct {
	mu                    sync.Mutex
	process, replid, name string
	at                    time.Time
	offset                position.Mark
}

// follow takes in what a server has said of itself, and returns the name.
func (n *line) follow(s server, sent, now time.Time) string {
	if s.history == "" {
		return ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	same := s.process != "" && s.process == n.process && s.former == "" && now.Sub(n.at) < lineKept
	if s.history != n.replid && !same {
		n.name = s.history
		n.offset.Forget()
	}
	n.process, n.replid, n.at = s.process, s.history, now
	return n.name + n.offset.Follow(position.Position{s.offset}, sent, now)
}
