package storekit

import (
	"context"
	"errors"
	"slices"

	"github.com/slotlease/slotlease/store"
)

// Page returns the oldest records above a Seq, oldest first. Lists go from the newest to the oldest, so it reads by
// key, many at a time, as long as there is no gap. Where there is one it searches for its end, as a ledger's beginning is
// one, and lists what may be in between.
func (l *ObjectLedger) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, l.o.Runner.Invalid("page", err)
	}
	return Run(ctx, l.o.Runner, "page", workerType, func(ctx context.Context) ([]store.Record, error) {
		limit, after := min(limit, store.MaxPage), max(after, 0)
		if limit < 1 {
			return nil, nil
		}
		var records []store.Record
		if after > 0 {
			var err error
			if records, err = l.following(ctx, workerType, after, store.MaxSeq, limit); err != nil || len(records) == limit {
				return records, err
			}
			after += int64(len(records))
		}
		head, _, err := l.list(ctx, workerType, span{}, 1)
		if err != nil || len(head) == 0 || head[0].seq <= after {
			return records, err
		}
		// What is appended from now on is left for the next page: a list may have it without the record before.
		newest := head[0].seq
		for tries := 0; len(records) < limit && after < newest && tries < mostLists; {
			more, err := l.oldest(ctx, workerType, after, newest, limit-len(records))
			if err != nil {
				return nil, err
			}
			if len(more) == 0 {
				tries++ // All were trimmed meanwhile.
				continue
			}
			records = append(records, more...)
			after = records[len(records)-1].Seq
		}
		if len(records) == 0 {
			return nil, errVanish
		}
		return records, nil
	})
}

// errVanish is the error of records that are deleted as soon as they are listed.
var errVanish = errors.New("records vanish as soon as they are listed: somebody deletes the newest")

// oldest reads some of the oldest records above a Seq that a gap follows, up to the newest and at most limit of them.
// There are none if they were trimmed meanwhile.
func (l *ObjectLedger) oldest(ctx context.Context, workerType string, after, newest int64, limit int) ([]store.Record, error) {
	end, err := l.search(ctx, workerType, after, newest)
	if err != nil {
		return nil, err
	}
	var between []listed
	if end > after+1 {
		if between, _, err = l.list(ctx, workerType, span{after, end}, 0); err != nil {
			return nil, err
		}
	}
	if len(between) == 0 {
		return l.following(ctx, workerType, end-1, newest, limit)
	}
	slices.Reverse(between)
	return l.contents(ctx, workerType, between[:min(limit, len(between))], atATime)
}

// following reads the records that follow a Seq without a gap, up to the newest and at most limit of them.
func (l *ObjectLedger) following(ctx context.Context, workerType string, after, newest int64, limit int) (records []store.Record, err error) {
	wanted := int(min(int64(limit), newest-after))
	// The first alone says whether there is a gap at once.
	for size := 1; len(records) < wanted; size = 8 * atATime {
		next := make([]listed, min(wanted-len(records), size))
		for i := range next {
			next[i].seq = after + int64(len(records)+i) + 1
		}
		found, err := l.contents(ctx, workerType, next, atATime)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			if r.Seq != after+int64(len(records))+1 {
				return records, nil
			}
			records = append(records, r)
		}
		if len(found) < len(next) {
			break
		}
	}
	return records, nil
}

// search finds a record above a Seq that has none right below it, by few reads: the oldest one, unless there are more gaps.
func (l *ObjectLedger) search(ctx context.Context, workerType string, after, newest int64) (int64, error) {
	low, high := after+1, newest // The one at high is there.
	for low < high {
		middle := low + (high-low)/2
		_, err := l.o.Objects.Read(ctx, l.o.Folder+RecordName(workerType, middle))
		switch {
		case err == nil:
			high = middle
		case errors.Is(err, store.ErrNotFound):
			low = middle + 1
		default:
			return 0, err
		}
	}
	return high, nil
}

// trimmable are the oldest records below a Seq, oldest first, at most store.TrimBatch of them. Lists begin with the newest
// record, so where one page doesn't reach the oldest, it is searched for: a ledger that wasn't trimmed for long may have a
// million, and a list of them takes longer than a worker waits. What late appends have left far below it is found when
// the ledger is short again.
func (l *ObjectLedger) trimmable(ctx context.Context, workerType string, before int64) ([]listed, error) {
	old, _, err := l.list(ctx, workerType, span{below: before}, listPage)
	if err != nil || len(old) < listPage {
		slices.Reverse(old)
		return old[:min(store.TrimBatch, len(old))], err
	}
	oldest, err := l.search(ctx, workerType, 0, old[listPage-1].seq)
	if err != nil {
		return nil, err
	}
	var near []listed // may be what a trim that failed has left
	for seq := max(oldest-AtATime, 1); seq < min(oldest, before); seq++ {
		near = append(near, listed{seq: seq})
	}
	left, err := l.contents(ctx, workerType, near, AtATime)
	if err != nil {
		return nil, err
	}
	old = nil
	for _, r := range left {
		old = append(old, listed{seq: r.Seq})
	}
	for seq := oldest; seq < before && len(old) < store.TrimBatch; seq++ {
		old = append(old, listed{seq: seq})
	}
	return old, nil
}
