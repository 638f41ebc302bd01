package terms

import "github.com/slotlease/slotlease/store"

// Contradicts reports why no worker that keeps the rules can have appended a record right
// after the one in force below it; nil if one can. Some of the records between the two may
// be poison: then less is known, and the key isn't adjacent.
//
// A record that is valid alone still moves the term in force if it begins before the end
// of that, or ends it without being of it: a worker that obeys such a record works beside
// the holder. And a token that doesn't grow fences nobody.
func Contradicts(below, r store.Record) error {
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
			return broken(ofExtension(below, r), "it is no extension of the term in seq %d, and has its claim", below.Seq)
		}
	case r.Kind == store.KindGrant || r.Kind == store.KindReset:
		if early {
			return broken(Overlap, "its window starts at %s, before that of seq %d ends at %s",
				store.Format(r.WindowStart), below.Seq, store.Format(below.WindowEnd))
		}
		if r.Token <= below.Token {
			return broken(Token, "its token %d is not above that of seq %d, %d", r.Token, below.Seq, below.Token)
		}
	case !adjacent && !same:
		// It may be of a term among the poison.
		if early {
			return broken(Bookkeeping, "its window ends at %s, before that of seq %d at %s",
				store.Format(r.WindowEnd), below.Seq, store.Format(below.WindowEnd))
		}
	case !same && r.Kind == store.KindRelease:
		return broken(OtherTerm, "it is not of the term in seq %d, and is no grant", below.Seq)
	case !same:
		return broken(Bookkeeping, "it is not of the term in seq %d, and is no grant", below.Seq)
	case r.Kind == store.KindRelease:
		after := r.WindowStart.UnixMilli() > r.Token && r.WindowEnd.Equal(r.WindowStart)
		if adjacent && (below.Kind == store.KindRelease || r.WindowEnd.After(below.WindowEnd)) || !after {
			return broken(Release, "it releases at %s what is not left of the term in seq %d", store.Format(r.WindowStart), below.Seq)
		}
	case early || !r.WindowEnd.Equal(r.WindowStart) || adjacent && !r.WindowEnd.Equal(below.WindowEnd):
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

// Dated takes no reset's word for being older than a record below it, as one is that was copied
// from elsewhere: by the time of long ago everything is too far ahead, and nothing in force. An
// override may end that anyhow.
func Dated(reset, below store.Record) bool {
	known := !below.ReadAt.IsZero() && !below.ReadAt.After(reset.ReadAt)
	return !reset.ReadAt.IsZero() && (known || reset.Kind == store.KindOverride)
}
