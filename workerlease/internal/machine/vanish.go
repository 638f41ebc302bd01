package machine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Mark is a grant to a worker or its group that is known to have been in the
// ledger.
type Grant struct {
	Seq   int64
	Claim string
	End   time.Time
	Told  bool // that it was not seen
}

// lookBack is how many records are read by who looks for one of its own among
// them: enough for all that others appended within a slot.
const lookBack = 16

// vanished looks, at the first read of the ledger after a grant was confirmed,
// whether the grant still stands. A store keeps what it has confirmed, or has let
// be read; if it doesn't (a rollback of what had not reached a majority, a
// restored backup), somebody else may have been granted the same window with the
// same token. That can't be prevented from here, only told; and if it is seen to
// have happened, the lease ends.
func (x *step) vanished(records []store.Record) {
	s := &x.s
	mark := s.LastGrant
	if mark.Seq == 0 {
		return
	}
	s.LastGrant = Grant{}
	bad := func(r store.Record) bool { return r.Seq != mark.Seq && x.poison(r) != nil }
	why, proven := mark.missing(slices.DeleteFunc(slices.Clone(records), bad))
	if why == nil {
		return
	}
	if !proven && x.at.Now.Earliest.Before(mark.End) {
		s.LastGrant = mark // It may be seen yet, or be proven to be gone.
		s.LastGrant.Told = true
	}
	if !proven && mark.Told {
		return
	}
	x.note(Note{
		What: Vanished, Slot: s.Slot, Err: why,
		Record: store.Record{WorkerType: x.m.WorkerType, Seq: mark.Seq, Claim: mark.Claim},
	})
	if proven && s.Held.Claim == mark.Claim {
		x.expire(RecordVanished)
	}
}

// missing says why the newest records that can be obeyed can't be those of a
// ledger in which the grant has stood since it was confirmed, nil if they can. It
// is proven by what is there, not by what is not: a read may be stale.
func (m Grant) missing(records []store.Record) (why error, proven bool) {
	for _, r := range records {
		switch {
		case r.Seq == m.Seq && r.Claim != m.Claim:
			return errors.New("another's record stands in place of this worker's grant"), true
		case r.Seq > m.Seq && r.Kind == store.KindGrant && r.WindowStart.Before(m.End):
			return fmt.Errorf("seq %d was granted from %s on, as if this worker's grant up to %s had not been there",
				r.Seq, store.Format(r.WindowStart), store.Format(m.End)), true
		}
	}
	if len(records) == 0 || records[0].Seq < m.Seq {
		return errors.New("this worker's grant is not among the newest records: the read was stale, or the store took back what it had confirmed"), false
	}
	return nil, false
}
