package linear

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// act says what an operation does.
type act string

const (
	actAppend act = "append"
	actGet    act = "get"
	actTail   act = "tail"
	actTrim   act = "trim"
)

// outcome is the answer that the caller got.
type outcome string

const (
	// unknown: no answer yet, or an error that is no answer.
	unknown  outcome = ""
	done     outcome = "done"
	conflict outcome = "conflict"
	notFound outcome = "not found"
	// refused: nothing was sent.
	refused outcome = "refused"
)

// identity is what a record is known by.
type identity struct {
	Seq   int64  `json:"seq"`
	Claim string `json:"claim"`
	Sum   uint64 `json:"sum"`
}

// identify digests a record as it was read, or as it is to be read back: all its fields,
// and alike in every process.
func identify(r store.Record) identity {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%#v", r) // It never fails.
	return identity{Seq: r.Seq, Claim: r.Claim, Sum: h.Sum64()}
}

func (i identity) String() string { return fmt.Sprintf("%d·%.6s", i.Seq, i.Claim) }

// call is how an operation begins.
type call struct {
	Client     string `json:"client"`
	Act        act    `json:"act"`
	WorkerType string `json:"workerType"`
	// Seq is the key of an append or a get, the limit of a tail, and `before` of a
	// trim.
	Seq int64 `json:"seq"`
	// Record is what an append wants to store.
	Record identity `json:"record,omitzero"`
	// At is when: a count, or a reading of a HistoryFile's clock.
	At int64 `json:"at"`
}

// reply is how an operation ends.
type reply struct {
	Outcome outcome `json:"outcome"`
	// Found is what a get or a tail returned.
	Found []identity `json:"found,omitempty"`
	// Removed is the number of records that a trim deleted.
	Removed int   `json:"removed,omitempty"`
	At      int64 `json:"until"`
}

// outcomeOf is the outcome that an error stands for.
func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return done
	case errors.Is(err, store.ErrConflict):
		return conflict
	case errors.Is(err, store.ErrNotFound):
		return notFound
	case errors.Is(err, store.ErrInvalid):
		return refused
	default:
		return unknown
	}
}

// operation is a call with its reply.
type operation struct {
	call
	reply
	// seen: this unknown append is the only one that can have stored the record
	// that a client read. So it did.
	seen bool
	// Set in the search alone: the phase of a trim, and, of a tail, the largest bound of the trims that went on meanwhile.
	phase   phase
	trimmed int64
}

// phase is a moment of a trim that deleted records: any of those below its bound may vanish from when it opens until
// it closes.
type phase int

const (
	opens phase = 1 + iota
	closes
)

// silent reports whether an operation doesn't constrain the ledger.
func (o *operation) silent() bool {
	switch {
	case o.Outcome == refused:
		return true
	case o.Act == actGet || o.Act == actTail:
		return o.Outcome == unknown
	default:
		return false
	}
}

// ghost reports whether an operation may take effect at any time or never.
func (o *operation) ghost() bool { return o.Outcome == unknown }

// misses reports whether an operation shows that a record is not there. A tail does not, if the record is
// one that a trim may be deleting.
func (o *operation) misses(r identity) bool {
	switch o.Act {
	case actAppend:
		return o.Outcome == done && o.Seq == r.Seq && o.Record != r
	case actGet:
		return o.Seq == r.Seq && (o.Outcome == notFound || o.Found[0] != r)
	case actTail:
		n := len(o.Found)
		whole := int64(n) < o.Seq || n > 0 && o.Found[n-1].Seq < r.Seq
		return whole && r.Seq >= o.trimmed && !slices.Contains(o.Found, r)
	default:
		return false
	}
}

// String describes an operation in one line.
func (o *operation) String() string {
	result := string(o.Outcome)
	switch {
	case o.Outcome == unknown:
		result = "unknown"
	case o.Outcome != done:
	case o.Act == actGet || o.Act == actTail:
		texts := make([]string, len(o.Found))
		for i, f := range o.Found {
			texts[i] = f.String()
		}
		result = "[" + strings.Join(texts, " ") + "]"
	case o.Act == actTrim:
		result = fmt.Sprintf("%d deleted", o.Removed)
	}
	switch o.Act {
	case actAppend:
		return fmt.Sprintf("append %v → %s", o.Record, result)
	case actTail:
		return fmt.Sprintf("tail, limit %d → %s", o.Seq, result)
	case actTrim:
		return fmt.Sprintf("trim before %d %s→ %s", o.Seq, [...]string{"", "begins ", "ends "}[o.phase], result)
	default:
		return fmt.Sprintf("%s %d → %s", o.Act, o.Seq, result)
	}
}
