package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	code "modernc.org/sqlite/lib"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

const (
	// maxTails is how many tails one statement reads at most, and maxRows how many records, so that appends don't wait
	// long for it: it takes about 10 ms.
	maxTails, maxRows = 500, 1000
	// gathered is the largest limit of a tail that is read together with others.
	gathered = 8
)

// question is a call of Tail, and answer what it returns.
type (
	question struct {
		workerType string
		limit      int
		from       int64 // see patience
	}
	answer struct {
		records []store.Record
		stamp   store.Stamp
		err     error
	}
)

// Tail returns the newest records, newest first, with a stamp for free. Calls for a few records that goroutines
// of one handle make at the same time share a statement.
func (l *Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	a := l.ask(ctx, question{workerType, max(limit, 0), l.tailWaits.Load()})
	if a.err != nil {
		a.err = fmt.Errorf("sqlite: tail %s: %w", workerType, a.err)
	}
	return a.records, a.stamp, a.err
}

// ask reads the newest records of a type, with those of others if few are wanted.
func (l *Ledger) ask(ctx context.Context, q question) answer {
	// The types of a shared statement are sent as JSON, which has no room for names that are no text.
	if q.limit > gathered || store.CheckWorkerType(q.workerType) != nil {
		return l.readAtOnce(ctx, patience{waits: new(atomic.Int64)}, []question{q})[0]
	}
	if ctx.Err() == nil {
		// A closed handle says so at once, also while a tail hangs that has begun before.
		if err := l.begin(); err != nil {
			return answer{err: err}
		}
		l.calls.Done()
	}
	a, _, answered := l.tails.Call(ctx, q)
	if !answered {
		a.err = fault.Ended(ctx)
	}
	return a
}

// readTails reads the newest records of several types, by as few statements as may be.
func (l *Ledger) readTails(ctx context.Context, asked []question) (answers []answer) {
	most := 1
	for _, q := range asked {
		most = max(most, q.limit)
	}
	for part := range slices.Chunk(asked, max(maxRows/most, 1)) {
		answers = append(answers, l.readPart(ctx, part)...)
	}
	return answers
}

// readPart reads the newest records of as many types as one statement reads, with the patience of the one that has
// waited longest: those that wait are in the order in which they came.
func (l *Ledger) readPart(ctx context.Context, asked []question) (answers []answer) {
	answers = l.readAtOnce(ctx, patience{&l.tailWaits, asked[0].from}, asked)
	if err := answers[0].err; err == nil || len(asked) == 1 || !apart(err) {
		return answers
	}
	answers = answers[:0]
	for _, q := range asked {
		answers = append(answers, l.readPart(ctx, []question{q})...)
	}
	return answers
}

// apart reports whether some of the tails that failed together may succeed alone: a damaged page has the records of
// few types, and a table that another program has named json_each hides what a shared statement needs.
func apart(err error) bool {
	switch resultCode(err) & 0xff {
	case code.SQLITE_ERROR, code.SQLITE_CORRUPT, code.SQLITE_IOERR:
		return true
	default:
		return false
	}
}

// readAtOnce reads the newest records of several types. They share the stamp or the error.
func (l *Ledger) readAtOnce(ctx context.Context, p patience, asked []question) []answer {
	answers, err := attempt(ctx, l, p, onFile(l, func(ctx context.Context, f *file) (answers []answer, err error) {
		if len(asked) == 1 {
			answers, err = f.tail(ctx, asked[0])
		} else {
			answers, err = f.tails(ctx, asked)
		}
		if err != nil {
			return nil, err
		}
		stamp, err := l.stamp(ctx, f)
		for i := range answers {
			answers[i].stamp = stamp
		}
		return answers, err
	}))
	if err != nil {
		return slices.Repeat([]answer{{err: err}}, len(asked))
	}
	return answers
}

// tail reads the newest records of one type.
func (f *file) tail(ctx context.Context, q question) ([]answer, error) {
	ask := func(ctx context.Context, db rowser) ([]store.Record, error) {
		return rows(ctx, db, func(row *sql.Rows) (store.Record, error) {
			return scanTail(row, q.workerType)
		}, selectTail, q.workerType, int64(store.MaxSeq), q.limit)
	}
	var records []store.Record
	var err error
	if q.limit <= maxBrief {
		records, err = brief(ctx, f, func(ctx context.Context, conn *sql.Conn) ([]store.Record, error) { return ask(ctx, conn) })
	} else {
		records, err = ask(ctx, f.db)
	}
	return []answer{{records: records}}, err
}

// tails reads the newest records of several types by one statement, in one state of the file.
func (f *file) tails(ctx context.Context, asked []question) ([]answer, error) {
	names, most := make([]string, len(asked)), 0
	for i, q := range asked {
		names[i], most = q.workerType, max(most, q.limit)
	}
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	answers, odd := make([]answer, len(asked)), make([]bool, len(asked))
	_, err = brief(ctx, f, func(ctx context.Context, conn *sql.Conn) ([]struct{}, error) {
		return rows(ctx, conn, func(row *sql.Rows) (none struct{}, err error) {
			var i int
			r, err := scanTail(row, "", &i)
			if err != nil {
				return none, err
			}
			switch {
			case r.Seq == 0 && r.WorkerType == "":
				r.WorkerType = names[i]
			case r.Seq == 0:
				odd[i] = true
			}
			answers[i].records = append(answers[i].records, r)
			return none, nil
		}, selectTails, string(list), int64(store.MaxSeq), most)
	})
	for i, q := range asked {
		answers[i].records = newest(answers[i].records, q.limit)
		// Only the file can put keys in order that are no integers. Those who write refuse its table.
		if odd[i] && err == nil {
			var alone []answer
			if alone, err = f.tail(ctx, q); err == nil {
				answers[i] = alone[0]
			}
		}
	}
	return answers, err
}

// newest sorts the records of a type, newest first, and cuts them off at a limit. One that stands for a key that
// can't be followed comes first, and doesn't count.
func newest(records []store.Record, limit int) []store.Record {
	slices.SortFunc(records, func(a, b store.Record) int {
		switch {
		case a.Seq == 0:
			return -1
		case b.Seq == 0:
			return 1
		}
		return cmp.Compare(b.Seq, a.Seq)
	})
	if len(records) > 0 && records[0].Seq == 0 {
		limit++
	}
	return records[:min(limit, len(records))]
}

// scanTail reads a row of selectTail or selectTails.
func scanTail(row *sql.Rows, workerType string, more ...any) (store.Record, error) {
	var unreachable bool
	r, err := scan(row, append([]any{&unreachable}, more...)...)
	if unreachable {
		r = store.Record{WorkerType: workerType, Defect: fmt.Sprintf("seq %d can't be followed", r.Seq)}
	}
	return r, err
}

// queryTails is queryTail for the types of a JSON list. The last column is the place of the type in it. It has the
// name of its table before it, since others may have added a column of that name.
func queryTails() string {
	return `SELECT NULL, n` + strings.Repeat(", NULL", len(columns)-2) + `, 1, key FROM (
		SELECT (` + strings.ReplaceAll(selectUnreachable, "?1", "asked.value") + `) AS n, asked.key FROM json_each(?1) AS asked) WHERE n IS NOT NULL
		UNION ALL SELECT ` + readColumns() + `, 0, asked.key FROM json_each(?1) AS asked CROSS JOIN WorkerLeases
		ON workerType = asked.value AND seq IN (
			SELECT seq FROM WorkerLeases WHERE workerType = asked.value AND seq BETWEEN 1 AND ?2 ORDER BY seq DESC LIMIT ?3 + 0)`
}
