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

// mostBytes is how much one script reads, about: a reply must not keep the server from others.
const mostBytes = 16 << 20

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
}

// rows reads the records of a span. Scores that are no Seq are passed over; if newestFirst, one of them comes first
// as an unreachable record, and those above store.MaxSeq are looked for, too.
func (l *Ledger) rows(ctx context.Context, workerType string, s span) (got found, err error) {
	if s.limit < 1 {
		return got, nil
	}
	order, above := "ZRANGEBYSCORE", ""
	if s.newestFirst {
		order, above = "ZREVRANGEBYSCORE", maxSeq
	}
	key := l.names.ledger(workerType)
	unreachable, passed := "", 0
	for {
		values, k, err := l.read(ctx, call{rangeScript, []string{key}, []any{order, s.from, s.to, s.limit - len(got.records), storekit.MaxDocument, mostBytes, above}})
		if err != nil {
			return found{}, err
		}
		p, err := readPart(values)
		if err != nil {
			return found{}, err
		}
		if got.stamp, err = l.stamp(k, values[0], values[1]); err != nil {
			return found{}, err
		}
		if p.expires {
			return found{}, expires(key).Refuse()
		}
		if unreachable == "" {
			unreachable = p.above
		}
		for i, score := range p.scores {
			seq, ok := seqOf(score)
			switch n := len(got.records); {
			case !ok:
				passed++
				unreachable = score
			case n > 0 && got.records[n-1].Seq == seq:
				got.records[n-1] = twice(workerType, seq)
			default:
				got.records = append(got.records, decode(workerType, seq, p.documents[i]))
			}
		}
		n := len(got.records)
		if n > 0 && p.twins > 1 {
			if seq, ok := seqOf(p.scores[len(p.scores)-1]); ok && got.records[n-1].Seq == seq {
				got.records[n-1] = twice(workerType, seq)
			}
		}
		if !p.more || n >= s.limit || n > 0 && s.short {
			break
		}
		if passed > document.MaxUnreachable {
			return found{}, fmt.Errorf("more than %d members of %s whose scores are no Seq, such as %.40s: remove them", document.MaxUnreachable, key, unreachable)
		}
		s.from, above = "("+p.scores[len(p.scores)-1], ""
	}
	if s.newestFirst && unreachable != "" {
		got.records = slices.Insert(got.records, 0, document.Unreachable(workerType, "the score "+unreachable))
	}
	return got, nil
}

// part is the reply of the script.
type part struct {
	expires           bool
	above             string
	more              bool
	twins             int64
	scores, documents []string
}

func readPart(values []any) (p part, err error) {
	odd := errors.New("odd reply to a range of records")
	if len(values) != 7 {
		return p, odd
	}
	ttl, isTTL := values[2].(int64)
	above, isAbove := values[3].(string)
	more, isMore := values[4].(int64)
	twins, isTwins := values[5].(int64)
	rows, isRows := values[6].([]any)
	if !isTTL || !isAbove || !isMore || !isTwins || !isRows || len(rows)%2 != 0 || more > 0 && len(rows) == 0 {
		return p, odd
	}
	p = part{expires: ttl >= 0, above: above, more: more > 0, twins: twins}
	for i := 0; i < len(rows); i += 2 {
		score, isScore := rows[i].(string)
		text, isText := rows[i+1].(string)
		if !isScore || !isText {
			return p, odd
		}
		p.scores, p.documents = append(p.scores, score), append(p.documents, text)
	}
	return p, nil
}

// seqOf is the Seq of a score, or false if there is none.
func seqOf(score string) (int64, bool) {
	f, err := strconv.ParseFloat(score, 64)
	if err != nil || f != math.Trunc(f) || f < 1 || f > store.MaxSeq {
		return 0, false
	}
	return int64(f), true
}

// decode reads a document, which the script leaves out if it is too large.
func decode(workerType string, seq int64, text string) store.Record {
	if text == "" {
		return document.Defective(workerType, seq, errors.New("the record is missing, or far larger than any"))
	}
	return storekit.Decode(workerType, seq, []byte(text))
}

// twice is a record that another program has added a second document to.
func twice(workerType string, seq int64) store.Record {
	return document.Defective(workerType, seq, errors.New("there are two documents with this Seq"))
}
