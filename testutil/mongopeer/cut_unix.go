//go:build unix

package mongopeer

// Cut cuts a member off from the others. Clients still reach it.
func (s *Set) Cut(i int) { s.setCut(func(m *member) bool { return m.cut || m == s.members[i] }) }

// Heal joins all members again.
func (s *Set) Heal() { s.setCut(func(*member) bool { return false }) }

func (s *Set) setCut(cut func(*member) bool) {
	s.mu.Lock()
	for _, m := range s.members {
		m.cut = cut(m)
	}
	s.mu.Unlock()
	for _, m := range s.members {
		m.bridge.review()
	}
}

// allowed says whether a server may connect to a member of the set.
func (s *Set) allowed(from int, to *member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if m.port == from {
			return m == to || !m.cut && !to.cut
		}
	}
	return true
}
