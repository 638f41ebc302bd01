package ledger

import "github.com/slotlease/slotlease/store"

// Contradicts reports why no worker that keeps the rules can have appended a record right
// after the one in force below it; nil if one can. Some of the records between the two may
// be poison: then less is known, and the key isn't adjacent.
//
// A record that is valid alone still moves the term in force if it begins before the end
// of that, or ends it without being of it: a worker that obeys such a record works beside
// the holder. And a token that doesn't grow fences nobody.
func Contradicts(below, r store.Record) error {
	switch {
	case below.Seq == 0:
		return nil
	case r.Kind == store.KindOverride:
		return overrides(below, r)
	case r.Kind == store.KindGrant && r.Claim == below.Claim:
		return extends(below, r)
	case r.Kind == store.KindGrant || r.Kind == store.KindReset:
		return begins(below, r)
	case !adjacent(below, r) && !sameTerm(below, r):
		// It may be of a term among the poison.
		if early(below, r) {
			return broken(Bookkeeping, "its window ends at %s, before that of seq %d at %s",
				store.Format(r.WindowEnd), below.Seq, store.Format(below.WindowEnd))
		}
		return nil
	case r.Kind == store.KindRelease:
		return releases(below, r)
	}
	return keeps(below, r)
}

func adjacent(below, r store.Record) bool { return below.Seq+1 == r.Seq }

func sameTerm(below, r store.Record) bool {
	return r.Claim == below.Claim && r.Group == below.Group && r.Token == below.Token
}

// early reports that a record begins before the window below it ends.
func early(below, r store.Record) bool { return r.WindowStart.Before(below.WindowEnd) }

// extends reports why a grant with the claim of the term below it can't follow that. Others of the term may be
// among the poison.
func extends(below, r store.Record) error {
	gap := adjacent(below, r) && r.WindowStart.After(below.WindowEnd)
	if !sameTerm(below, r) || early(below, r) || below.Kind == store.KindRelease || gap {
		return broken(ofExtension(below, r), "it is no extension of the term in seq %d, and has its claim", below.Seq)
	}
	return nil
}

// begins reports why a record that begins a term, or a reset, can't follow the one below it.
func begins(below, r store.Record) error {
	if early(below, r) {
		return broken(Overlap, "its window starts at %s, before that of seq %d ends at %s",
			store.Format(r.WindowStart), below.Seq, store.Format(below.WindowEnd))
	}
	if r.Token <= below.Token {
		return broken(Token, "its token %d is not above that of seq %d, %d", r.Token, below.Seq, below.Token)
	}
	return nil
}

// releases reports why a release can't follow the record below it.
func releases(below, r store.Record) error {
	if !sameTerm(below, r) {
		return broken(OtherTerm, "it is not of the term in seq %d, and is no grant", below.Seq)
	}
	after := r.WindowStart.UnixMilli() > r.Token && r.WindowEnd.Equal(r.WindowStart)
	if adjacent(below, r) && (below.Kind == store.KindRelease || r.WindowEnd.After(below.WindowEnd)) || !after {
		return broken(Release, "it releases at %s what is not left of the term in seq %d", store.Format(r.WindowStart), below.Seq)
	}
	return nil
}

// keeps reports why a record that grants nothing can't follow the one below it.
func keeps(below, r store.Record) error {
	if !sameTerm(below, r) {
		return broken(Bookkeeping, "it is not of the term in seq %d, and is no grant", below.Seq)
	}
	if early(below, r) || !r.WindowEnd.Equal(r.WindowStart) || adjacent(below, r) && !r.WindowEnd.Equal(below.WindowEnd) {
		return broken(Bookkeeping, "it moves the end of the term in seq %d", below.Seq)
	}
	return nil
}

// ofExtension is the rule that a grant with the claim of the term below it breaks.
func ofExtension(below, r store.Record) Rule {
	switch {
	case r.Group != below.Group || r.Token != below.Token:
		return ExtensionTerm
	case below.Kind == store.KindRelease:
		return ExtensionLate
	case r.WindowStart.Before(below.WindowEnd):
		return Overlap
	}
	return ExtensionGap
}

// overrides reports why a record, an override, can't follow the one below it. It may begin
// before the end of that: this is what it is for. If it had the claim of that, the holder
// would go on with its term above it.
func overrides(below, r store.Record) error {
	switch {
	case r.Claim == below.Claim:
		return broken(Override, "it is an override, and has the claim of seq %d", below.Seq)
	case r.Token <= below.Token:
		return broken(Token, "its token %d is not above that of seq %d, %d", r.Token, below.Seq, below.Token)
	}
	return nil
}
