package document

import (
	"cmp"
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// MaxUnreachable bounds the number of unreachable ids that Walk passes over.
const MaxUnreachable = 10_000

// Query says which records of a worker type to read, in the order of their keys.
type Query struct {
	WorkerType string
	// Below bounds the Seq, if not 0, and then After does, too.
	Below, After int64
	NewestFirst  bool
	// Limit is the number of wanted records, 0 for all.
	Limit int
	// Keys asks for records that have only their key.
	Keys bool
}

// IDs is a range of ids. The zero IDs are all of a worker type, keys or not.
type IDs struct{ From, Below string }

// keys are the ids of the records that a query is for.
func (q Query) keys() IDs {
	return IDs{store.Key(q.WorkerType, q.After+1), store.Key(q.WorkerType, cmp.Or(q.Below, store.MaxSeq+1))}
}

// Page is the query for the oldest records above a Seq. It reports false if there can be none.
func Page(workerType string, after int64, limit int) (Query, bool) {
	q := Query{WorkerType: workerType, After: max(after, 0), Below: store.MaxSeq + 1, Limit: min(limit, store.MaxPage)}
	return q, q.Limit > 0 && after < store.MaxSeq
}

// Walk reads the records of a query, and reports an unreachable id if it meets one. It
// doesn't search for those that sort below the wanted records. find visits documents in
// the order of their ids, up to a limit and until visit returns false. decode makes the
// record of a document.
func Walk(q Query,
	find func(ids IDs, limit int, visit func(id string, raw []byte) bool) error,
	decode func(workerType string, seq int64, raw []byte) store.Record,
) (records []store.Record, unreachable string, err error) {
	passed := 0
	visit := func(id string, raw []byte) {
		seq, ok := SeqOf(q.WorkerType, id)
		switch {
		case !ok:
			passed++
			unreachable = cmp.Or(unreachable, id)
		case q.Keys:
			records = append(records, store.Record{WorkerType: q.WorkerType, Seq: seq})
		default:
			records = append(records, decode(q.WorkerType, seq, raw))
		}
	}
	var ids IDs
	if q.Below != 0 {
		ids = q.keys()
	}
	err = find(ids, q.Limit, func(id string, raw []byte) bool { visit(id, raw); return true })
	if err != nil || unreachable == "" {
		return records, "", err
	}

	// Unreachable ids used up the limit. Read again without a limit until there are
	// enough records, and without the ids that sort outside all keys.
	records, passed = nil, 0
	err = find(q.keys(), 0, func(id string, raw []byte) bool {
		visit(id, raw)
		return (q.Limit == 0 || len(records) < q.Limit) && passed <= MaxUnreachable
	})
	if err == nil && passed > MaxUnreachable {
		err = fmt.Errorf("more than %d ids such as %.120q that are no keys: remove them", MaxUnreachable, unreachable)
	}
	return records, unreachable, err
}

// Trimmable reads the keys that Trim may delete: the oldest below a Seq, at most most of
// them, and never the head.
func Trimmable(workerType string, before int64, most int, read func(q Query) ([]store.Record, error)) ([]store.Record, error) {
	head, err := read(Query{WorkerType: workerType, NewestFirst: true, Limit: 1, Keys: true})
	if err != nil || len(head) == 0 {
		return nil, err
	}
	if before = min(before, head[0].Seq); before <= 1 || most < 1 {
		return nil, nil
	}
	return read(Query{WorkerType: workerType, Below: before, Limit: most, Keys: true})
}

// Unreachable is what Tail shows of an id that Walk reported.
func Unreachable(workerType, id string) store.Record {
	return store.Record{WorkerType: workerType, Defect: fmt.Sprintf("key %.120q: can't be followed", id)}
}

// Pick chooses between the name in the options and that in the URI, and checks it.
func Pick(what, option, uri, fallback string, check func(name string) error) (string, error) {
	if option != "" && uri != "" && option != uri {
		return "", fmt.Errorf("options: %s %.70q in Options and %.70q in the URI: give one", what, option, uri)
	}
	name := cmp.Or(option, uri, fallback)
	return name, check(name)
}
