package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// poison finds what no worker can have written that keeps the rules, or what
// can't be read at all. The zero Record, an empty ledger, is fine.
func poison(head store.Record, now timeline.Interval, ahead, longest time.Duration) error {
	if head.Seq == 0 {
		return nil
	}
	if err := head.CheckEnvelope(); err != nil {
		return err
	}
	limit := now.Latest.Add(ahead)
	switch length := head.WindowEnd.Sub(head.WindowStart); {
	case head.Seq >= store.MaxSeq:
		return errors.New("the ledger is full: no seq is left")
	case head.WindowStart.After(limit) && (length > 0 || head.WindowStart.After(limit.Add(longest))):
		// What grants nothing stands at the end of the tenure in force.
		return fmt.Errorf("window starts at %s, more than %v ahead of store time",
			store.Format(head.WindowStart), ahead)
	case length > longest:
		return fmt.Errorf("window is %v long, more than %v", length, longest)
	case head.Token > limit.UnixMilli():
		return fmt.Errorf("token %d is more than %v ahead of store time", head.Token, ahead)
	}
	return nil
}

// resetAt lets poison end no tenure: that below it, which may be longer than
// one's own slots, stays in force to its end.
func resetAt(below store.Record, now timeline.Interval) (time.Time, int64) {
	at := ceil(now.Latest)
	return later(at, below.WindowEnd), max(at.UnixMilli(), below.Token+1)
}

func (x *step) poison(head store.Record) error {
	return x.m.Rules.Poison(head, x.at.Now, x.m.Rules.Ahead, x.m.Rules.Longest)
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
	if hole := head.Seq > 1 && (len(below) == 0 || below[0].Seq != head.Seq-1); hole &&
		now.Earliest.Before(s.Watch.Since.Add(patience+x.m.Rules.ClaimAge)) {
		// Below it are free keys, on which a claim in doubt may yet land.
		s.Why = Poisoned
		x.miss(s.Slot.End)
		x.next()
		return
	}
	s.Sent, s.Stage = x.reset(head, below, why), Sending
}

// reset makes the record that supersedes poison.
func (x *step) reset(head store.Record, below []store.Record, why error) store.Record {
	r := x.stamped(store.KindReset, head.Seq+1)
	r.Claim = x.id()
	var inForce store.Record
	if i := slices.IndexFunc(below, func(b store.Record) bool { return x.poison(b) == nil }); i >= 0 {
		inForce = below[i]
	}
	x.s.Carried = x.m.Rules.Carry(inForce)
	r.DoneUntil, r.Attempt = inForce.DoneUntil, x.s.attempt(x.s.Slot)-1
	at, token := x.m.Rules.Reset(inForce, x.at.Now)
	r.WindowStart, r.WindowEnd, r.Token = at, at, token
	text := fmt.Sprintf("supersedes seq %d, unchanged since %s: %v", head.Seq, store.Format(x.s.Watch.Since), why)
	text = strings.ReplaceAll(text[:min(len(text), 512)], "\x00", "")
	r.Metadata = strings.ToValidUTF8(text, "")
	return r
}
