package machine

import (
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// contradicts reports why no worker that keeps the rules can have appended a record right
// after the one in force below it; nil if one can. Some of the records between the two may
// be poison: then less is known, and the key isn't adjacent.
//
// A record that is valid alone still moves the term in force if it begins before the end
// of that, or ends it without being of it: a worker that obeys such a record works beside
// the holder. And a token that doesn't grow fences nobody.
func contradicts(below, r store.Record) error {
	adjacent := below.Seq+1 == r.Seq
	same := r.Claim == below.Claim && r.Group == below.Group && r.Token == below.Token
	early := r.WindowStart.Before(below.WindowEnd)
	switch {
	case below.Seq == 0:
		return nil
	case r.Kind == store.KindOverride:
		return overrides(below, r)
	case r.Kind == store.KindGrant && r.Claim == below.Claim:
		// An extension. Others of the term may be among the poison.
		if !same || early || below.Kind == store.KindRelease || adjacent && r.WindowStart.After(below.WindowEnd) {
			return fmt.Errorf("it is no extension of the term in seq %d, and has its claim", below.Seq)
		}
	case r.Kind == store.KindGrant || r.Kind == store.KindReset:
		if early {
			return fmt.Errorf("its window starts at %s, before that of seq %d ends at %s",
				store.Format(r.WindowStart), below.Seq, store.Format(below.WindowEnd))
		}
		if r.Token <= below.Token {
			return fmt.Errorf("its token %d is not above that of seq %d, %d", r.Token, below.Seq, below.Token)
		}
	case !adjacent && !same:
		// It may be of a term among the poison.
		if early {
			return fmt.Errorf("its window ends at %s, before that of seq %d at %s",
				store.Format(r.WindowEnd), below.Seq, store.Format(below.WindowEnd))
		}
	case !same:
		return fmt.Errorf("it is not of the term in seq %d, and is no grant", below.Seq)
	case r.Kind == store.KindRelease:
		after := r.WindowStart.UnixMilli() > r.Token && r.WindowEnd.Equal(r.WindowStart)
		if adjacent && (below.Kind == store.KindRelease || r.WindowEnd.After(below.WindowEnd)) || !after {
			return fmt.Errorf("it releases at %s what is not left of the term in seq %d", store.Format(r.WindowStart), below.Seq)
		}
	case early || !r.WindowEnd.Equal(r.WindowStart) || adjacent && !r.WindowEnd.Equal(below.WindowEnd):
		return fmt.Errorf("it moves the end of the term in seq %d", below.Seq)
	}
	return nil
}

// defect reports why the first of some records, newest first, can't be obeyed: it is poison
// alone, or contradicts what was in force below it.
func (f facts) defect(records []store.Record) error {
	if len(records) == 0 {
		return nil
	}
	if why := f.poison(records[0]); why != nil {
		return why
	}
	return f.m.Rules.Contradicts(f.base(records[0], records[1:]), records[0])
}

// base is the record below the head that the head has to agree with: the newest that is not
// poison. A reset ends all that was poison to its writer, which may have been so by the
// time of that: windows too far ahead, and above poison those that had not begun. So does
// an override.
func (f facts) base(head store.Record, below []store.Record) store.Record {
	resets := supersedes(head)
	if at := &f.at.Newest; resets && !head.ReadAt.IsZero() {
		at.Earliest, at.Latest = head.ReadAt, head.ReadAt
	}
	for i, r := range below {
		switch {
		case f.poison(r) != nil:
		case resets && (f.impossible(below[i:]) || i > 0 && unbegun(r, f.at.Newest.Latest)):
		default:
			return r
		}
	}
	return store.Record{}
}

// impossible reports that the first of some records is poison, as far as that and the
// record right below it show. What a reset may end is asked of the head alone: see base.
func (f facts) impossible(records []store.Record) bool {
	r := records[0]
	if f.poison(r) != nil {
		return true
	}
	return len(records) > 1 && r.Kind != store.KindReset && f.poison(records[1]) == nil &&
		f.m.Rules.Contradicts(records[1], r) != nil
}

// foreign reports that no worker can have appended a record that was found where one's own
// was to go.
func (f facts) foreign(r store.Record) bool {
	b := &f.s.Bid
	return b.Record.Kind != store.KindReset && f.m.Rules.Contradicts(b.Below, r) != nil
}

// needsMore reports that the newest records don't show whether the first of them can be
// obeyed or, if it can't, which term is in force below it.
func (f facts) needsMore(records []store.Record) bool {
	switch {
	case len(records) == 0 || records[len(records)-1].Seq == 1:
		return len(records) == 0
	case len(records) == 1:
		return true
	}
	head, below := records[0], records[1:]
	resets := supersedes(head) && len(below) == 1 && f.m.Rules.Contradicts(below[0], head) != nil
	return resets || (f.poison(head) != nil || f.poison(below[0]) != nil) && !f.hasValidBase(below)
}
