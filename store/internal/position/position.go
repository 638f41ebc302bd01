// Package position remembers how far a server has come, as it says of itself: by the offset of its replication, or by the time of
// its newest operation. If the same server says less later, it has lost what came in between: its machine was restored from a
// snapshot, for example.
package position

import (
	"fmt"
	"sync"
	"time"
)

// Position is larger the further a server has come; the first number decides.
type Position [2]int64

func (p Position) before(q Position) bool { return p[0] < q[0] || p[0] == q[0] && p[1] < q[1] }

// Mark is the furthest position known. It is safe for concurrent use.
type Mark struct {
	mu   sync.Mutex
	most Position
	at   time.Time // when it was known
	back string
}

// Follow takes in the position in a reply to what was sent at sent, by a monotonic clock, and received at received. It returns a name
// that is empty at first, and another one each time a server has gone back. Replies that overtake one another mean nothing. The zero
// Position is none.
func (m *Mark) Follow(p Position, sent, received time.Time) (name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case p == Position{}:
	case !p.before(m.most):
		if m.most != p {
			m.most, m.at = p, received
		}
	case sent.After(m.at):
		m.back = fmt.Sprintf(", back at %d.%d", p[0], p[1])
		m.most, m.at = p, received
	}
	return m.back
}

// Name is what Follow has returned last.
func (m *Mark) Name() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.back
}

// Forget begins anew, as when another line of changes is followed, whose positions mean something else.
func (m *Mark) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most, m.at, m.back = Position{}, time.Time{}, ""
}
