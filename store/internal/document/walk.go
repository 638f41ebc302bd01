package document

import (
	"cmp"
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// MaxUnreachable bounds the number of unreachable ids that Walk passes over.
const MaxUnreachable = 10_000

// Walk reads the records at valid keys of a worker type, up to a limit unless that is 0,
// and reports an unreachable id if it meets one. It doesn't search for those that sort
// below the wanted records. find visits documents in the order of their ids, up to a
// limit and until visit returns false: those of the worker type, or only those between
// its lowest and its highest key. record makes the record of a document.
func Walk(workerType string, limit int,
	find func(betweenKeys bool, limit int, visit func(id string, raw []byte) bool) error,
	record func(seq int64, raw []byte) store.Record,
) (records []store.Record, unreachable string, err error) {
	passed := 0
	visit := func(id string, raw []byte) {
		if seq, ok := SeqOf(workerType, id); ok {
			records = append(records, record(seq, raw))
			return
		}
		passed++
		unreachable = cmp.Or(unreachable, id)
	}
	err = find(false, limit, func(id string, raw []byte) bool { visit(id, raw); return true })
	if err != nil || unreachable == "" {
		return records, "", err
	}

	// Unreachable ids used up the limit. Read again without a limit until there are
	// enough records, and without the ids that sort outside all keys.
	records, passed = nil, 0
	err = find(true, 0, func(id string, raw []byte) bool {
		visit(id, raw)
		return (limit == 0 || len(records) < limit) && passed <= MaxUnreachable
	})
	if err == nil && passed > MaxUnreachable {
		err = fmt.Errorf("more than %d ids such as %.120q that are no keys: remove them", MaxUnreachable, unreachable)
	}
	return records, unreachable, err
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
