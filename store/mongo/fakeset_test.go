package mongo

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// fakeReplicaSet is a replica set of three fake servers that really store documents. A write is in the
// log of the primary first; then in those of the members that it reaches; and once a majority has
// it, reads with read concern majority show it. The test says who is primary, who reaches whom and
// for how long. What a set of real servers answers meanwhile was recorded: see testdata/replies.
//
// It is simpler than a real one: replication takes no time where members reach each other, and
// rolled-back members have no state of their own. Safety doesn't rest on either.
type fakeReplicaSet struct {
	t       testing.TB
	members []*fakeMember
	// settle is how long a new primary's reads may show an older state: a majority of what it has
	// is known to it only after its first own write is replicated.
	settle time.Duration
	// news is how long clients take to hear of a change, unless they run into it.
	news  time.Duration
	talks sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each change
	ended   chan struct{}
	conns   []fakeConn
	term    int
	// What was played, so that a test can demand it.
	reads      int
	waiting    int // writes that wait for a majority now
	rolledBack int
	answered   map[string]int
	streams    map[int64]*fakeStream
}

// fakeMember is one server of the set.
type fakeMember struct {
	*fakeServer
	set *fakeReplicaSet

	// The rest is guarded by set.mu.
	log       []*change
	committed int // how much of the log it knows a majority to have
	all, seen documents
	primary   bool
	knows     *fakeMember // the primary, as far as it knows
	leads     int         // the term in which it was primary last
	cut       bool        // reaches no other member, but clients reach it
	down      bool
	version   int64
}

// serveReplicaSet makes a set whose first member is primary. listen starts a member's server.
func serveReplicaSet(t testing.TB, listen func(*fakeServer)) *fakeReplicaSet {
	t.Helper()
	s := &fakeReplicaSet{t: t, settle: 50 * time.Millisecond, changed: make(chan struct{}), ended: make(chan struct{}), answered: map[string]int{}, streams: map[int64]*fakeStream{}}
	for i := range 3 {
		m := &fakeMember{set: s, all: documents{}, seen: documents{}}
		m.fakeServer = &fakeServer{t: t, addr: fmt.Sprintf("m%d.test:27017", i), now: time.Now, whole: m.answerTo}
		s.members = append(s.members, m)
		listen(m.fakeServer)
	}
	t.Cleanup(func() {
		s.mu.Lock()
		close(s.ended)
		s.hangUp(func(fakeConn) bool { return true })
		s.mu.Unlock()
		s.talks.Wait()
	})
	s.elect(s.members[0])
	return s
}

// stir wakes up everything that waits for a change. The lock is held.
func (s *fakeReplicaSet) stir() {
	close(s.changed)
	s.changed = make(chan struct{})
	for _, m := range s.members {
		m.version++
	}
}

func (m *fakeMember) reaches(o *fakeMember) bool {
	return m == o || !m.cut && !o.cut && !m.down && !o.down
}

// replicate sends a primary's log to the members that it reaches and, if it counts them, commits
// what a majority has. Others hear of that with the next write. The lock is held.
func (s *fakeReplicaSet) replicate(m *fakeMember, count bool) {
	n := 0
	for _, o := range s.members {
		if !m.reaches(o) || m.down {
			continue
		}
		n++
		if o != m {
			o.follow(m)
		}
	}
	// Only a write of its own term says that a majority has all before it.
	if count && n > len(s.members)/2 && len(m.log) > 0 && m.log[len(m.log)-1].term == m.leads {
		m.commit(len(m.log))
	}
	s.stir()
}

// follow makes a member's log that of a primary. What only this member has is rolled back.
func (m *fakeMember) follow(p *fakeMember) {
	same := min(len(m.log), len(p.log))
	for same > 0 && m.log[same-1] != p.log[same-1] {
		same--
	}
	if same < m.committed {
		m.set.t.Errorf("the fake set rolls back what a majority had: %d of %d", same, m.committed)
	}
	if lost := m.log[same:]; len(lost) > 0 {
		for _, c := range lost {
			if c.doc != nil {
				m.set.rolledBack++
			}
		}
		m.log = slices.Clone(m.log[:same])
		m.all = documentsOf(m.log)
		m.hangUp()
	}
	m.knows, m.primary = p, false
	for _, c := range p.log[same:] {
		m.add(c)
	}
	m.commit(max(m.committed, p.committed))
}

func (m *fakeMember) hangUp() { m.set.hangUp(func(c fakeConn) bool { return c.to == m }) }

func (m *fakeMember) add(c *change) {
	m.log = append(m.log, c)
	m.all.apply(c)
}

func (m *fakeMember) commit(n int) {
	for ; m.committed < n; m.committed++ {
		m.seen.apply(m.log[m.committed])
	}
}

// elect makes a member primary, which must have all that a majority has. An old one that it
// reaches steps down.
func (s *fakeReplicaSet) elect(m *fakeMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term++
	m.primary, m.knows, m.leads = true, m, s.term
	m.add(&change{term: s.term})
	s.replicate(m, s.settle == 0)
	if s.settle > 0 {
		term := s.term
		time.AfterFunc(s.settle, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if m.primary && m.leads == term {
				s.replicate(m, true)
			}
		})
	}
}

// stepDown makes a primary a secondary. If others reach it, they lose their primary, too.
func (s *fakeReplicaSet) stepDown(m *fakeMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.primary = false
	for _, o := range s.members {
		if m.reaches(o) && o.knows == m {
			o.knows = nil
		}
	}
	s.stir()
}

// split cuts a member off from the others, but not from its clients.
func (s *fakeReplicaSet) split(m *fakeMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.cut = true
	s.stir()
}

// heal joins a member that was cut off with the others. What it alone has is rolled back.
func (s *fakeReplicaSet) heal(m *fakeMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.cut = false
	s.rejoin()
}

// rejoin brings all members to the log of the newest primary. The lock is held.
func (s *fakeReplicaSet) rejoin() {
	if p := s.newest(); p != nil {
		s.replicate(p, true)
	}
	s.stir()
}

// kill ends a member's process, and start starts it again on its data.
func (s *fakeReplicaSet) kill(m *fakeMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.down, m.primary = true, false
	for _, o := range s.members {
		if o.knows == m {
			o.knows = nil
		}
	}
	m.hangUp()
	s.stir()
}

func (s *fakeReplicaSet) start(m *fakeMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.down = false
	s.rejoin()
}

// newest is the primary of the latest term, or nil. The lock is held.
func (s *fakeReplicaSet) newest() (newest *fakeMember) {
	for _, m := range s.members {
		if m.primary && !m.down && (newest == nil || m.leads > newest.leads) {
			newest = m
		}
	}
	return newest
}

// primary is the primary of the latest term.
func (s *fakeReplicaSet) primary() *fakeMember {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest()
}

// other is a member that may become primary: one that isn't it, and that has all that a majority
// may have seen.
func (s *fakeReplicaSet) other(than *fakeMember) *fakeMember {
	s.mu.Lock()
	defer s.mu.Unlock()
	var best *fakeMember
	for _, m := range s.members {
		if m == than || m.cut || m.down {
			continue
		}
		if best == nil || lastTerm(m) > lastTerm(best) || lastTerm(m) == lastTerm(best) && len(m.log) > len(best.log) {
			best = m
		}
	}
	return best
}

func lastTerm(m *fakeMember) int {
	if len(m.log) == 0 {
		return 0
	}
	return m.log[len(m.log)-1].term
}

// played reports how often a kind of reply was given.
func (s *fakeReplicaSet) played(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[kind]
}

// addresses are those of all members.
func (s *fakeReplicaSet) addresses() (all bson.A) {
	for _, m := range s.members {
		all = append(all, m.addr)
	}
	return all
}
