package sim

import (
	"slices"
	"sort"

	"github.com/slotlease/slotlease/store"
)

// records are the true contents of the store for one worker type, by Seq. The caller guards
// them.
type records struct{ list []store.Record }

func (s *records) find(seq int64) (int, bool) {
	// Nearly always it is among the newest.
	i := len(s.list)
	for n := 0; i > 0 && n < 8; n++ {
		if s.list[i-1].Seq < seq {
			return i, false
		}
		i--
		if s.list[i].Seq == seq {
			return i, true
		}
	}
	i = sort.Search(i, func(i int) bool { return s.list[i].Seq >= seq })
	return i, i < len(s.list) && s.list[i].Seq == seq
}

// insert adds a record unless its key exists.
func (s *records) insert(r store.Record) bool {
	i, found := s.find(r.Seq)
	if !found {
		s.list = slices.Insert(s.list, i, r)
	}
	return !found
}

func (s *records) remove(seq int64) {
	if i, found := s.find(seq); found {
		s.list = slices.Delete(s.list, i, i+1)
	}
}

func (s *records) get(seq int64) (store.Record, bool) {
	if i, found := s.find(seq); found {
		return s.list[i], true
	}
	return store.Record{}, false
}

// grant is the newest record but for outcomes, which are said of it.
func (s *records) grant() store.Record {
	i := len(s.list) - 1
	for i > 0 && s.list[i].Kind == store.KindOutcome {
		i--
	}
	if i < 0 {
		return store.Record{}
	}
	return s.list[i]
}

// below is the newest record below a key. That is its neighbour, unless poison was planted
// above a free key.
func (s *records) below(seq int64) (store.Record, bool) {
	i, _ := s.find(seq)
	if i == 0 {
		return store.Record{}, false
	}
	return s.list[i-1], true
}

// tail is the newest records that can be followed, newest first, without the newest ones
// that a stale read lacks. An unreachable record above them comes first, with a Defect.
func (s *records) tail(limit, hidden int) []store.Record {
	n := s.followed()
	out := make([]store.Record, 0, min(max(limit, 0), n)+1)
	if n < len(s.list) {
		out = append(out, store.Record{WorkerType: s.list[n].WorkerType, Defect: "seq can't be followed"})
	}
	for i := n - 1 - hidden; i >= 0 && limit > 0; i-- {
		out = append(out, s.list[i])
		limit--
	}
	return out
}

// followed is how many records have a Seq that can be followed.
func (s *records) followed() int {
	n := len(s.list)
	for n > 0 && s.list[n-1].Seq > store.MaxSeq {
		n--
	}
	return n
}

// head is the newest record that can be followed; its Seq is 0 if there is none.
func (s *records) head() store.Record {
	if n := s.followed(); n > 0 {
		return s.list[n-1]
	}
	return store.Record{}
}

// trim deletes the oldest records below a Seq, but never the head.
func (s *records) trim(before int64) int {
	n := 0
	for n < min(s.followed()-1, store.TrimBatch) && s.list[n].Seq < before {
		n++
	}
	s.list = slices.Delete(s.list, 0, n)
	return n
}
