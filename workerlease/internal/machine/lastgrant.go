package machine

import (
	"errors"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Grant is a grant to a worker or its group that is known to have been in the
// ledger.
type Grant struct {
	Seq   int64
	Claim string
	End   time.Time
	Told  bool // that it was not seen
}

// lookBack is how many records a worker reads to find one of its own among them:
// enough for all that others appended within a slot.
const lookBack = 16

// hidesGrant has more records read if the newest don't reach down to the last grant. Of the
// next slot, one record is above it at most, so two are enough unless others went on without
// this worker.
func (x *step) hidesGrant(records []store.Record) bool {
	v := &x.s.View
	if x.s.Hold.Looking || v.LastGrant.Seq == 0 || v.Asked >= lookBack || len(records) == 0 || records[len(records)-1].Seq <= v.LastGrant.Seq {
		return false
	}
	if _, proven := v.LastGrant.missing(x.beside(records)); proven {
		return false // It is reported at once.
	}
	v.Depth = lookBack
	return true
}

// beside are the records that can be obeyed, and the one at the key of the last grant.
func (x *step) beside(records []store.Record) (obeyed []store.Record) {
	for i, r := range records {
		if r.Seq == x.s.View.LastGrant.Seq || !x.ledger().Impossible(records[i:]) {
			obeyed = append(obeyed, r)
		}
	}
	return obeyed
}

// checkLastGrant checks, at the first read of the ledger after a grant was confirmed,
// that the grant still stands. A store keeps whatever it has confirmed or let be read.
// If it doesn't (a rollback of what had not reached a majority, a restored backup),
// another worker may have been granted the same window with the same token. A worker
// can't prevent that, only report it; and if it is seen to have happened, the lease
// ends.
func (x *step) checkLastGrant(records []store.Record) {
	s := x.s
	last := s.View.LastGrant
	if last.Seq == 0 {
		return
	}
	why, proven := last.missing(x.beside(records))
	s.View.LastGrant = Grant{}
	if why == nil {
		return
	}
	if !proven && x.at.Now.Earliest.Before(last.End) {
		s.View.LastGrant = last // It may be seen yet, or be proven to be gone.
		s.View.LastGrant.Told = true
	}
	if !proven && last.Told {
		return
	}
	x.note(Note{
		What: Vanished, Slot: s.Bid.Slot, Err: why,
		Record: store.Record{WorkerType: x.m.WorkerType, Seq: last.Seq, Claim: last.Claim},
	})
	if proven && s.Hold.Held.Claim == last.Claim {
		x.expire(RecordVanished)
	}
}

// missing reports why the newest records that can be obeyed can't be those of a
// ledger in which the grant has stood since it was confirmed; nil if they can. It
// is proven by records that are there, not by one that isn't: a read may be stale.
func (g Grant) missing(records []store.Record) (why error, proven bool) {
	for _, r := range records {
		switch {
		case r.Seq == g.Seq && r.Claim != g.Claim:
			return errors.New("another's record stands in place of this worker's grant"), true
		case r.Seq > g.Seq && r.Kind == store.KindGrant && r.WindowStart.Before(g.End):
			return fmt.Errorf("seq %d was granted from %s on, as if this worker's grant up to %s had not been there",
				r.Seq, store.Format(r.WindowStart), store.Format(g.End)), true
		}
	}
	if len(records) == 0 || records[0].Seq < g.Seq {
		return errors.New("this worker's grant is not among the newest records: the read was stale, or the store took back what it had confirmed"), false
	}
	return nil, false
}
