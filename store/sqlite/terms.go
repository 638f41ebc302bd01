package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// This file reads a ledger as its workers do, as far as that shows which terms may be in force.

const (
	// longest is the longest window that workers obey.
	longest = 366 * 24 * time.Hour
	// soon is how far ahead of store time a window may start, or a token be, that they obey.
	soon = 10 * time.Minute
	// plausible is how far a window may be ahead of a line that was just made, so that it is
	// taken for one that somebody may obey by it.
	plausible = 24 * time.Hour
	// deepest is how many records of a worker type they look at to find one that they obey,
	// and kept how many of the newest are never trimmed.
	deepest, kept = 1 << 12, 100
)

// newest has, for each worker type, the newest records that workers follow, newest first: down
// to the oldest that can't be read or whose window ends after a time, and may be obeyed.
func newest(ctx context.Context, f *file, db rowser, since time.Time) (all [][]store.Record, err error) {
	text, err := f.text(ctx, selectSince)
	if err != nil {
		return nil, err
	}
	type row struct {
		store.Record
		first, from int64
	}
	found, err := rows(ctx, db, func(r *sql.Rows) (x row, err error) {
		x.Record, err = scan(r, &x.first, &x.from)
		return x, err
	}, text, int64(store.MaxSeq), since.UnixMilli(), longest.Milliseconds(), deepest)
	if err != nil {
		return nil, err
	}
	for len(found) > 0 {
		first := found[0]
		n := 1
		for n < len(found) && found[n].WorkerType == first.WorkerType {
			n++
		}
		records := make([]store.Record, n)
		for i, r := range found[:n] {
			records[i] = r.Record
		}
		if store.CheckWorkerType(first.WorkerType) == nil && first.WorkerType != store.Sightings {
			all = append(all, followed(records, first.first, first.from))
		}
		found = found[n:]
	}
	return all, nil
}

// followed are the records without those above a free key, which workers don't follow: they go
// on below, up to there. The first is the lowest key of the worker type that is taken, and from
// is that down to which all were read, and the one below it.
func followed(records []store.Record, first, from int64) []store.Record {
	n := 0
	for i, r := range records {
		free := false // for all that is known of what is below the last
		switch {
		case i+1 < len(records):
			free = records[i+1].Seq != r.Seq-1
		case r.Seq == first:
			free = r.Seq > 1 && r.Seq <= kept && !obeyed(r) // Else what was below was trimmed.
		case r.Seq == from:
			free = true
		}
		switch {
		case free:
			n = i + 1
		case i+1 < len(records) && obeyed(r) && obeyed(records[i+1]):
			return records[n:]
		}
	}
	return records[n:]
}

// obeyed reports whether workers can obey a record at some time, by what it says alone.
func obeyed(r store.Record) bool {
	length := r.WindowEnd.Sub(r.WindowStart)
	return r.CheckEnvelope() == nil && r.Seq < store.MaxSeq && length <= longest && (length == 0 || r.Kind != store.KindOverride)
}

// implausible reports whether workers don't obey a record because it is too far ahead of a time.
func implausible(r store.Record, at time.Time) bool {
	limit := at.Add(soon)
	grants := r.WindowStart.Before(r.WindowEnd) || r.Kind == store.KindOverride
	return r.WindowStart.After(limit) && (grants || r.WindowStart.After(limit.Add(longest))) || r.Token > limit.UnixMilli()
}

// unfinished are the terms that may be in force at some time, and a newer record that can't be
// read, if there is one. A release ends its own term, and an override all that are older. Above
// what can't be read, a worker grants or releases nothing but after its end.
//
// Of each term it is the newest record, with the window of the whole, and the claim and token that
// it began with: an extension, and the next
// slot of a lease that goes on, begin where the window before ends. Who works by that has leave
// up to the end of the newest.
func unfinished(records []store.Record) (terms []store.Record, unread store.Record) {
	var released []string
	superseded := false
	for _, r := range records {
		grants := r.WindowStart.Before(r.WindowEnd)
		switch {
		case r.Defect != "":
			if !superseded && unread.Seq == 0 {
				unread = r
			}
			continue
		case !obeyed(r):
			continue
		case r.Kind == store.KindOverride:
			return terms, unread
		case r.Kind == store.KindRelease:
			released = append(released, r.Claim)
		case grants && !slices.Contains(released, r.Claim):
			if i := slices.IndexFunc(terms, func(newer store.Record) bool { return continues(newer, r) }); i >= 0 {
				terms[i].Claim, terms[i].Token, terms[i].WindowStart = r.Claim, r.Token, r.WindowStart
			} else {
				terms = append(terms, r)
			}
		}
		superseded = superseded || grants || r.Kind == store.KindRelease || r.Kind == store.KindReset
	}
	return terms, unread
}

// continues reports whether a record goes on with the term of an older one.
func continues(newer, older store.Record) bool {
	return (newer.Claim == older.Claim || newer.Token == older.Token) && newer.WindowStart.Equal(older.WindowEnd)
}

// within reports whether a time is in the window of a record.
func within(r store.Record, at time.Time) bool {
	return !r.WindowStart.After(at) && at.Before(r.WindowEnd)
}
