package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

// maxSeq is store.MaxSeq as a score.
var maxSeq = strconv.FormatInt(store.MaxSeq, 10)

// span says which records of a worker type to read, by their scores.
type span struct {
	newestFirst bool
	from, to    string
	limit       int
	// short: fewer records than the limit will do, if it is one.
	short bool
}

// found is what was read.
type found struct {
	records []store.Record
	stamp   store.Stamp
	// unreachable is a score that is no Seq, and passed how many were passed over.
	unreachable string
	passed      int
}

// rows reads the records of a span. Scores that are no Seq are passed over; if newestFirst, one of them comes first
// as an unreachable record, and of those above store.MaxSeq the highest is enough.
func (l *Ledger) rows(ctx context.Context, workerType string, s span) (got found, err error) {
	order := "ZRANGEBYSCORE"
	if s.newestFirst {
		order = "ZREVRANGEBYSCORE"
	}
	key := l.names.ledger(workerType)
	for most := s.limit; len(got.records) < s.limit; {
		n := min(s.limit-len(got.records), most)
		var rows []string
		rows, got.stamp, err = l.read(ctx, command{order, key, s.from, s.to, "WITHSCORES", "LIMIT", 0, n + 1})
		switch {
		case errors.Is(err, errTooMuch) && n > 1:
			most = n / 2 // Other programs may store anything.
			continue
		case err != nil:
			return found{}, fmt.Errorf("%s: %w", key, err)
		}
		if len(rows) > 1 {
			if above, err := strconv.ParseFloat(rows[1], 64); err == nil && above > store.MaxSeq {
				got.unreachable, s.from = rows[1], maxSeq
				continue
			}
		}
		got.take(workerType, rows, n)
		if len(rows) <= 2*n || s.short && len(got.records) > 0 {
			break
		}
		if got.passed > document.MaxUnreachable {
			return found{}, fmt.Errorf("more than %d members of %s whose scores are no Seq, such as %.40s: remove them", document.MaxUnreachable, key, got.unreachable)
		}
		s.from = "(" + rows[2*n-1]
	}
	if s.newestFirst && got.unreachable != "" {
		got.records = slices.Insert(got.records, 0, document.Unreachable(workerType, "the score "+got.unreachable))
	}
	return got, nil
}

// take decodes n documents with their scores. One more shows whether the last has a twin, which another program has added.
func (f *found) take(workerType string, rows []string, n int) {
	for i := 0; i+1 < len(rows); i += 2 {
		seq, ok := seqOf(rows[i+1])
		last := len(f.records) - 1
		switch {
		case ok && last >= 0 && f.records[last].Seq == seq:
			f.records[last] = document.Defective(workerType, seq, errors.New("there are two documents with this Seq"))
		case i == 2*n:
		case !ok:
			f.unreachable = rows[i+1]
			f.passed++
		default:
			f.records = append(f.records, storekit.Decode(workerType, seq, []byte(rows[i])))
		}
	}
}

// seqOf is the Seq of a score, or false if there is none.
func seqOf(score string) (int64, bool) {
	f, err := strconv.ParseFloat(score, 64)
	if err != nil || f != math.Trunc(f) || f < 1 || f > store.MaxSeq {
		return 0, false
	}
	return int64(f), true
}
