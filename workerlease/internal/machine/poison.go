package machine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// poison says why a head can't be obeyed, or nil. The zero Record, an empty
// ledger, is fine.
func (x *step) poison(head store.Record) error {
	if head.Seq == 0 {
		return nil
	}
	if err := head.CheckEnvelope(); err != nil {
		return err
	}
	limit := x.at.Now.Latest.Add(x.m.Rules.Ahead)
	switch length := head.WindowEnd.Sub(head.WindowStart); {
	case head.Seq >= store.MaxSeq:
		return errors.New("the ledger is full: no seq is left")
	case head.WindowStart.After(limit) && (length > 0 || head.WindowStart.After(limit.Add(x.m.Rules.Longest))):
		// What grants nothing stands at the end of the tenure in force.
		return fmt.Errorf("window starts at %s, more than %v ahead of store time",
			store.Format(head.WindowStart), x.m.Rules.Ahead)
	case length > x.m.Rules.Longest:
		return fmt.Errorf("window is %v long, more than %v", length, x.m.Rules.Longest)
	case head.Token > limit.UnixMilli():
		return fmt.Errorf("token %d is more than %v ahead of store time", head.Token, x.m.Rules.Ahead)
	}
	return nil
}

// watch reports poison, and supersedes it when it has stood long enough that
// nobody can still have a claim to it. It is never treated as free.
func (x *step) watch(head store.Record, below []store.Record, why error) {
	s, now := &x.s, x.at.Now
	if s.Watch.Seq != head.Seq {
		s.Watch = Watch{Seq: head.Seq, Since: now.Latest}
		x.tell(Note{What: Poison, Slot: s.Slot, Record: head, Err: why})
	}
	patience := s.Slot.Length()
	if head.CheckEnvelope() == nil {
		patience = max(patience, min(head.WindowEnd.Sub(head.WindowStart), x.m.Rules.PatienceCap))
	}
	patience += x.m.Rules.Patience
	if now.Earliest.Before(s.Watch.Since.Add(patience)) || head.Seq >= store.MaxSeq || s.JoinOnly {
		s.Why = Poisoned
		x.miss(s.Slot.End)
		x.next()
		return
	}
	if below == nil && head.Seq > 1 {
		// The head came from a read-back. Read it with what is below it.
		x.readHead()
		return
	}
	s.Sent, s.Stage = x.reset(head, below, why), Sending
}

// reset makes the record that supersedes poison. Poison doesn't end the tenure
// below it, which may be longer than one's own slots: the reset stands at its
// end.
func (x *step) reset(head store.Record, below []store.Record, why error) store.Record {
	at := ceil(x.at.Now.Latest)
	r := x.stamped(store.KindReset, head.Seq+1)
	r.Claim = x.id()
	r.Token = at.UnixMilli()
	for _, b := range below {
		if x.poison(b) == nil {
			at = later(at, b.WindowEnd)
			r.Token = max(r.Token, b.Token+1)
			break
		}
	}
	r.WindowStart, r.WindowEnd = at, at
	text := fmt.Sprintf("supersedes seq %d, unchanged since %s: %v", head.Seq, store.Format(x.s.Watch.Since), why)
	text = strings.ReplaceAll(text[:min(len(text), 512)], "\x00", "")
	r.Metadata = strings.ToValidUTF8(text, "")
	return r
}
