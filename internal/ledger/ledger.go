// Package ledger says what a list of records means: which of them workers obey, what is poison and
// how long it is watched, which term is in force, and which may be. The engine goes by it; so does a
// store before it changes its own time, and so do all who read ledgers. The package is pure: its
// functions are of records, a time, and [Rules]. Records are newest first throughout.
package ledger

import (
	"time"

	"github.com/slotlease/slotlease/store"
)

// Rules are those by which records are judged. All go by [Standard]; tests break one.
type Rules struct {
	// Poison reports why a record can't be obeyed, nil if it can, given the latest that store time
	// may be, Ahead and Longest: how far from now a window may start, and how long it may be.
	Poison         func(r store.Record, latest time.Time, ahead, longest time.Duration) error
	Ahead, Longest time.Duration
	// Contradicts reports why a record can't follow the one below it, which can be obeyed,
	// nil if it can. Then it is poison, although it can be read.
	Contradicts func(below, r store.Record) error
	// Dated reports that a reset was written at its ReadAt, as far as a record below it shows.
	Dated func(reset, below store.Record) bool
	// Leads reports that no key is free between two records, the lower of which is the
	// zero Record if nothing is below. A record above a free key is not followed.
	Leads func(lower, upper store.Record) bool
	// Keep is the number of the newest records that are never trimmed.
	Keep int64
	// Patience is how long poison is watched, on top of the longer of one's own slot, up to
	// a day, and Span. Span is how long windows of poison may be in force, newest first: one may be
	// a grant that only this worker can't read or obey.
	Patience time.Duration
	Span     func(poison []store.Record) time.Duration
}

// Standard are the rules of all workers.
var Standard = Rules{
	Poison:      Poison,
	Ahead:       Ahead,
	Longest:     Longest,
	Contradicts: Contradicts,
	Dated:       dated,
	Leads:       leads,
	Keep:        Keep,
	Patience:    5 * time.Minute,
	Span:        span,
}

// Reader reads records as those do who know that store time is at most Latest.
type Reader struct {
	Rules  *Rules
	Latest time.Time
}

// At reads records by the standard rules.
func At(latest time.Time) Reader { return Reader{Rules: &Standard, Latest: latest} }

// always reads records at a time that is later than all times of records.
var always = At(time.Date(10_000, time.January, 1, 0, 0, 0, 0, time.UTC))

// Poison reports why a record is poison by itself; nil if it isn't.
func (v Reader) Poison(r store.Record) error {
	return v.Rules.Poison(r, v.Latest, v.Rules.Ahead, v.Rules.Longest)
}

// Supersedes reports that a record ends what is poison below it. An override ends what can
// be obeyed as well.
func Supersedes(r store.Record) bool {
	return r.Kind == store.KindReset || r.Kind == store.KindOverride
}
