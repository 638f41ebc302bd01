package machine

import (
	"errors"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Trips are how long ledger operations took of late, as this worker has measured it.
type Trips struct {
	// Samples are of the store's time. They count as reads as well; but a store may answer them
	// fast, and queries so slowly that they are given up.
	Samples        Trip
	Reads, Appends Trip
}

// Trip is how long operations of one kind took.
type Trip struct {
	Recent [4]time.Duration // those that were answered, the newest first; 0: none yet
	Cut    time.Duration    // the longest that was given up since; 0: none was
}

// Least is the shortest of late: an operation takes hardly less. 0: not known.
func (t Trip) Least() (least time.Duration) {
	for _, d := range t.Recent {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

// took is the longest of late.
func (t Trip) took() time.Duration {
	return max(t.Recent[0], t.Recent[1], t.Recent[2], t.Recent[3])
}

// answered takes in how long an operation took.
func (t *Trip) answered(took time.Duration) {
	copy(t.Recent[1:], t.Recent[:])
	t.Recent[0], t.Cut = max(took, 1), 0
}

// of are the trips of an operation's kind, nil of one that isn't measured.
func (t *Trips) of(op Op) *Trip {
	switch op {
	case Sampling:
		return &t.Samples
	case ReadingHead, ReadingRecord, Probing:
		return &t.Reads
	case Appending:
		return &t.Appends
	case Nothing, Trimming, Sighting:
	}
	return nil
}

// measure takes in how long the operation under way took. Of a failure, only that it was
// not answered within its time-out says anything of the way.
func (x *step) measure(e Event) {
	t := x.s.Trips.of(x.s.Pending)
	if t == nil {
		return
	}
	took, err := reply(e)
	x.took = took
	switch {
	case took <= 0:
	case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict):
		was := t.Cut
		t.answered(took)
		if !x.s.Closing.Done.IsZero() && took < was {
			t.Cut = was // One fast answer doesn't make a slow store fast, while work is to be recorded as done.
		}
		if t == &x.s.Trips.Samples {
			reads := &x.s.Trips.Reads
			cut := reads.Cut
			reads.answered(took)
			reads.Cut = cut
		}
	case timedOut(err) && x.s.telling():
		// It is given up sooner than others.
	case timedOut(err):
		// A driver may give up early, if it thinks the time too short.
		t.Cut = max(t.Cut, took, x.m.Timeout(x.s))
	}
}

// timedOut reports that an error is that of a context's deadline, or of a connection's.
func timedOut(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout()
}

// reply is how long the operation took that an event reports, and its error.
func reply(e Event) (took time.Duration, err error) {
	switch e := e.(type) {
	case Sampled:
		return e.Took, e.Err
	case HeadRead:
		return e.Took, e.Err
	case RecordRead:
		return e.Took, e.Err
	case Appended:
		return e.Took, e.Err
	}
	return 0, nil
}

// timeout gives an operation twice the longest time that one of its kind took of late, or was
// given in vain: so a store that has become slow is found out in a few tries, and an operation
// that hangs is given up. It never gives less than usual, nor more than most.
func timeout(usual, most, longest time.Duration) time.Duration {
	return max(usual, min(2*longest, most))
}

// Timeout is how long the ledger operation under way may take: long enough for a slow
// store, short enough to try again before the boundary, or before the end of the
// window that is to be extended.
func (m *Machine) Timeout(s *State) time.Duration {
	if s.telling() {
		return min(m.timeoutOf(s, s.Pending), mostTelling)
	}
	return m.timeoutOf(s, s.Pending)
}

// timeoutOf is how long an operation may take.
func (m *Machine) timeoutOf(s *State, op Op) time.Duration {
	const bound = 30 * time.Second
	usual, most := 5*time.Second, bound
	least := 250 * time.Millisecond
	switch {
	case s.Bid.Slot.IsZero():
	case s.Bid.Role == Extender && m.Failover > 0:
		usual, most = min(max(m.early()/3, least/4), usual), m.early()
	default:
		lead := m.lead(s.Bid.Slot)
		usual, most = min(max(lead/3, least), usual), lead*3/2
	}
	var t Trip
	switch of := s.Trips.of(op); {
	case of != nil:
		t = *of
	case op == Sighting:
		// It takes two reads and an append.
		t.Recent[0] = 2*s.Trips.Reads.took() + s.Trips.Appends.took()
		usual, most = 3*usual, 3*most
	}
	longest := max(t.took(), t.Cut)
	if !s.Closing.Done.IsZero() {
		// Others run the work again if this isn't recorded right after an outage. So what hangs in one is
		// given up while others still wait: a read soon, and an append, which is sent when a read was
		// answered, not before it has had as much time as that. In case that the store has become slow, one
		// in five gets more time, as much as an extension.
		usual = min(usual, m.Rules.CloseSoon)
		patient := s.Retries.Tries%5 == 4
		if of := s.Trips.of(op); of != &s.Trips.Reads {
			longest = max(longest, s.Trips.Reads.Recent[0])
		} else if !patient {
			longest = t.took()
		}
		if m.Failover > 0 {
			soon := max(m.early()/2, t.took()*3/2) // If it takes that long, it doesn't hang.
			if patient {
				soon = m.early()
			}
			most = min(most, soon, m.early())
		}
	}
	return m.Rules.Timeout(usual, min(most, bound), longest)
}

// landing takes the way back of an append to be as long as that of a read. The rest is the
// way there, and the work of the store. A worker that has appended nothing yet takes it for a
// read. It goes by the shortest of late: a claim may land late, but hardly before its turn.
func landing(t Trips, timed bool) time.Duration {
	reads, appends := t.Reads.Least(), t.Appends.Least()
	if appends == 0 {
		appends = reads
	}
	took := reads + max(appends-reads/2, 0)
	if !timed {
		took += reads
	}
	return took
}

// begins is when the bid is to be gone on with: at its turn or, if the claim is to land at its
// turn, as long before it as that takes.
func (m *Machine) begins(s *State) time.Time {
	b := &s.Bid
	if !b.Lands {
		return b.Turn
	}
	return b.Turn.Add(-min(m.Rules.Landing(s.Trips, b.Timed), 4*m.lead(b.Slot)))
}
