package linear

import (
	"errors"
	"math"
	"sync"

	"github.com/slotlease/slotlease/store"
)

// History is what clients did to one store, and the answers that they got. It is safe
// for concurrent use.
type History struct {
	mu  sync.Mutex
	ops []operation
	// count is the clock of this history: it grows with every start and every end, under
	// mu, so a call that ended before another began has the smaller number.
	count int64
	// loaded is the number of ops from history files.
	loaded int
}

// NewHistory returns an empty history of an empty store.
func NewHistory() *History { return &History{} }

// Client returns a ledger that passes everything on to inner and records appends,
// gets, tails and trims. The name is for people; clients may share one. Closing
// it closes inner.
//
// Wrap it around the ledger under test: around a ledger with faults it records what
// the caller saw; inside one, what the store did.
func (h *History) Client(name string, inner store.Ledger) store.Ledger {
	return &client{Ledger: inner, name: name, sink: h}
}

// Plant records that put stores r at a free key by another way than Append: because r
// was there from the beginning, or because no ledger would take it. Readers must see r
// as it is here. A nil put means that r is already stored; no client may have been
// using the key at that time.
func (h *History) Plant(r store.Record, put func()) {
	id, _ := h.begin(call{Client: "plant", Act: actAppend, WorkerType: r.WorkerType, Seq: r.Seq, Record: identify(r)})
	if put != nil {
		put()
	}
	h.end(id, reply{Outcome: done})
}

// Len is the number of operations that have begun.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ops)
}

func (h *History) begin(c call) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	c.At = h.count
	h.ops = append(h.ops, operation{call: c, reply: reply{At: never}})
	return len(h.ops) - 1, nil
}

func (h *History) end(id int, r reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	r.At = h.count
	h.ops[id].reply = r
}

// never is the end of an open operation.
const never = math.MaxInt64

var errMixed = errors.New("linear: history: it mixes its own operations with those of history files, whose times can't be compared")

// operations copies the operations that constrain the ledger. An unknown outcome never
// ends.
func (h *History) operations() ([]*operation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.loaded > 0 && h.loaded < len(h.ops) {
		return nil, errMixed
	}
	out := make([]*operation, 0, len(h.ops))
	for _, o := range h.ops {
		if o.silent() {
			continue
		}
		if o.ghost() {
			o.reply = reply{At: never}
		}
		out = append(out, &o)
	}
	return out, nil
}
