package history_test

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
)

func TestFindHead(t *testing.T) {
	a, b := recordtest.Grant(1, 0, "a"), recordtest.Grant(2, 1, "b")
	above := b
	above.Seq = 7
	poison := func(seq int64) store.Record {
		return store.Record{WorkerType: "export", Seq: seq, Defect: "no token"}
	}
	for name, test := range map[string]struct {
		records []store.Record // newest first
		limit   int
		head    int64
		stuck   bool
		more    bool // have to be read
	}{
		"nothing":               {nil, 10, 0, false, false},
		"a grant":               {[]store.Record{b, a}, 2, 2, false, false},
		"poison":                {[]store.Record{poison(2), a}, 10, 2, false, false},
		"above a free key":      {[]store.Record{above, a}, 10, 1, false, false},
		"poison without a key":  {[]store.Record{poison(0), b, a}, 10, 2, false, false},
		"only poison":           {[]store.Record{poison(207), poison(206)}, 10, 207, true, false},
		"the first is poison":   {[]store.Record{poison(2), poison(1)}, 10, 2, false, false},
		"only poison was found": {[]store.Record{poison(207), poison(206)}, 2, 0, false, true},
	} {
		head, known := history.FindHead(test.records, test.limit, recordtest.Noon.Add(6*time.Minute))
		if head.Record.Seq != test.head || head.Stuck != test.stuck || known == test.more {
			t.Errorf("%s: FindHead() = record %d, stuck %v, %v; want %d, %v, %v", name, head.Record.Seq, head.Stuck, known, test.head, test.stuck, !test.more)
		}
	}
}
