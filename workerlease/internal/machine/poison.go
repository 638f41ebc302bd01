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
		// What grants nothing stands at the end of the term in force.
		return fmt.Errorf("window starts at %s, more than %v ahead of store time",
			store.Format(head.WindowStart), ahead)
	case length > longest:
		return fmt.Errorf("window is %v long, more than %v", length, longest)
	case head.Token > limit.UnixMilli():
		return fmt.Errorf("token %d is more than %v ahead of store time", head.Token, ahead)
	}
	return nil
}

// resetAt lets poison end no term: that below it, which may be longer than
// one's own slots, stays in force to its end.
func resetAt(below store.Record, now timeline.Interval) (time.Time, int64) {
	at := ceil(now.Latest)
	return later(at, below.WindowEnd), max(at.UnixMilli(), below.Token+1)
}

func (x *step) poison(head store.Record) error {
	return x.m.Rules.Poison(head, x.at.Now, x.m.Rules.Ahead, x.m.Rules.Longest)
}

// longestSpan is more than a window of poison counts for: it would stand for years.
const longestSpan = 24 * time.Hour

// span counts the windows below the newest as well, since a reset ends all of them: what
// nobody can read may lie on top of a grant that only this worker can't obey.
func span(poison []store.Record) (longest time.Duration) {
	for _, r := range poison {
		if r.CheckEnvelope() == nil {
			longest = max(longest, r.WindowEnd.Sub(r.WindowStart))
		}
	}
	return min(longest, longestSpan)
}

// leads is why poison that stands above a free key is not followed. Nobody who keeps the
// rules has appended it, since whoever appends has read the key below. If it were
// superseded, the ledger would go on above it to whoever reads that, and below it to
// whoever reads an older state, or has an append in doubt there: the free key takes it,
// and both would work.
func leads(lower, upper store.Record) bool { return upper.Seq == lower.Seq+1 }

// strays is how many of the newest records are poison to which nothing leads: the ledger
// goes on below them, on the free keys, up to where they stand.
func (x *step) unreachable(records []store.Record) (n int) {
	for i, r := range records {
		if x.poison(r) == nil {
			break
		}
		var lower store.Record
		switch {
		case i+1 < len(records):
			lower = records[i+1]
		case len(records) >= x.s.Asked || r.Seq > x.m.Rules.Keep:
			return n // There is more below, or was: so many records are kept.
		}
		if !x.m.Rules.Leads(lower, r) {
			n = i + 1
		}
	}
	return n
}

// deepest is how many records are read at most to find one that can be obeyed.
const deepest = 1 << 12

// followed leaves out what the ledger doesn't lead to, and tells of it once. It reports
// false if more has to be read to know that: below poison, until there is something that
// can be obeyed.
func (x *step) reachable(records []store.Record) (_ []store.Record, known bool) {
	s := &x.s
	if s.Depth = 0; len(records) == 0 || x.poison(records[0]) == nil {
		s.Unreachable = 0
		return records, true
	}
	s.Depth = max(s.Asked, lookBack)
	if len(records) >= s.Asked && s.Asked < deepest && !x.hasValidBase(records) {
		s.Depth = max(16*s.Asked, lookBack)
		return nil, false
	}
	n := x.unreachable(records)
	if n == 0 {
		s.Unreachable = 0
		return records, true
	}
	if s.Unreachable != records[0].Seq {
		s.Unreachable = records[0].Seq
		err := fmt.Errorf("%w; a key below it is free, so it is not followed", x.poison(records[0]))
		x.note(Note{What: Poison, Slot: s.Slot, Record: records[0], Err: err})
	}
	return records[n:], true
}

// grounded reports that some of the newest records can be obeyed, or that there are none
// below them: so it is known what is in force.
func (x *step) hasValidBase(records []store.Record) bool {
	return slices.ContainsFunc(records, func(r store.Record) bool { return r.Seq == 1 || x.poison(r) == nil })
}

// watch reports poison, and supersedes it when it has stood long enough that
// nobody can still have a claim to it. It is never treated as free.
func (x *step) watch(head store.Record, below []store.Record, why error) {
	s, now := &x.s, x.at.Now
	if s.Watch.Seq != head.Seq {
		s.Watch = Watch{Seq: head.Seq, Since: now.Latest}
		x.note(Note{What: Poison, Slot: s.Slot, Record: head, Err: why})
	}
	patience := x.patience(head, below)
	// If nothing that can be obeyed is left below it, nobody knows what is in force.
	alone := below != nil && head.Seq > 1 && !x.hasValidBase(below)
	if now.Earliest.Before(s.Watch.Since.Add(patience)) || head.Seq >= store.MaxSeq || s.JoinOnly || alone {
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

// patience is how long the newest records are watched, which are poison.
func (x *step) patience(head store.Record, below []store.Record) time.Duration {
	poison := []store.Record{head}
	for _, r := range below {
		if x.poison(r) == nil {
			break
		}
		poison = append(poison, r)
	}
	return max(x.s.Slot.Length(), x.m.Rules.Span(poison)) + x.m.Rules.Patience
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
