package linear

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

var (
	// ErrIllegal: the history has no explanation. The ledger is not linearizable.
	ErrIllegal = errors.New("history is not linearizable")
	// ErrUndecided: no explanation was found in time, nor that there is none.
	ErrUndecided = errors.New("linearizability is undecided")
)

// Result counts what was checked.
type Result struct {
	// Operations are those that count, without reads that got no answer.
	Operations int
	// Searched are the operations in the search: all but the appends that are left out
	// as if they never took effect (see the package documentation).
	Searched int
	// Unknown are the appends and trims of unknown outcome among them, Conflicts
	// the appends that were answered so.
	Unknown, Conflicts int
	// Partitions were checked one by one: worker types, or single keys.
	Partitions int
	// Illegal and Undecided partitions. The others are linearizable.
	Illegal, Undecided int
	// Violations describe the illegal partitions.
	Violations []Violation
}

// Add adds up two results.
func (r *Result) Add(o Result) {
	r.Operations += o.Operations
	r.Searched += o.Searched
	r.Unknown += o.Unknown
	r.Conflicts += o.Conflicts
	r.Partitions += o.Partitions
	r.Illegal += o.Illegal
	r.Undecided += o.Undecided
	r.Violations = append(r.Violations, o.Violations...)
}

// Check looks for an explanation of each part of the history. The timeout bounds
// the search in one part, in real time; 0 is no bound. In a testing/synctest bubble
// it never strikes, as time stands still while the search goes on: a history that
// was recorded in one can be checked outside.
//
// The error is nil only if all parts are linearizable. It wraps ErrIllegal,
// ErrUndecided or both. Operations that have not returned yet count as unknown.
func (h *History) Check(timeout time.Duration) (Result, error) {
	ops, err := h.operations()
	if err != nil {
		return Result{}, err
	}
	result := Result{Operations: len(ops)}
	for _, o := range ops {
		if o.ghost() {
			result.Unknown++
		}
		if o.Outcome == conflict {
			result.Conflicts++
		}
	}
	parts := partitions(ops)
	result.Partitions = len(parts)

	rulings := make([]ruling, len(parts))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(parts)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(parts); i = int(next.Add(1)) - 1 {
				rulings[i] = parts[i].judge(timeout)
			}
		})
	}
	wg.Wait()
	var late []partition
	for i, r := range rulings {
		result.Searched += r.searched
		switch r.verdict {
		case porcupine.Illegal:
			result.Violations = append(result.Violations, r.violation)
		case porcupine.Unknown:
			late = append(late, parts[i])
		case porcupine.Ok:
		}
	}
	result.Illegal, result.Undecided = len(result.Violations), len(late)
	return result, errors.Join(summary(ErrIllegal, result.Violations), summary(ErrUndecided, late))
}

// summary describes the first of some parts.
func summary[T fmt.Stringer](err error, of []T) error {
	if len(of) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d parts, such as %v", err, len(of), of[0])
}

// ruling is what came of the last search in a part, and for how many operations it
// looked for an order.
type ruling struct {
	verdict   porcupine.CheckResult
	searched  int
	violation Violation // of judge only
}

// check decides on a part; the package's documentation says why it may leave
// things out.
func (p partition) check(timeout time.Duration) ruling {
	r := p.plain(timeout)
	if r.verdict == porcupine.Illegal {
		ops, unread := p.narrowed(false)
		if more := p.sheltering(unread); len(more) > 0 {
			r = decide(slices.Concat(ops, more), timeout)
		}
	}
	return r
}

// plain is check as if no unread append ever took effect. It tries the likely
// first: an explanation of a guess is one.
func (p partition) plain(timeout time.Duration) ruling {
	ops, _ := p.narrowed(true)
	r := decide(ops, timeout)
	if r.verdict != porcupine.Ok {
		ops, _ = p.narrowed(false)
		r = decide(ops, timeout)
	}
	return r
}

func decide(ops []*operation, timeout time.Duration) ruling {
	return ruling{verdict: porcupine.CheckOperationsTimeout(model, history(ops), timeout), searched: len(ops)}
}

// history is what the checker wants. A trim that deleted records did so one by one, and so becomes two operations, each
// at one instant: its call and its reply.
func history(ops []*operation) []porcupine.Operation {
	out := make([]porcupine.Operation, 0, len(ops))
	add := func(o *operation) {
		out = append(out, porcupine.Operation{Input: o, Call: o.call.At, Return: o.reply.At})
	}
	for _, o := range ops {
		if o.Act != actTrim || o.ghost() || o.Removed == 0 {
			add(o)
			continue
		}
		first, last := *o, *o
		first.phase, first.reply.At = opens, o.call.At
		last.phase, last.call.At = closes, o.reply.At
		add(&first)
		add(&last)
	}
	return out
}

// String names a part and says how long it is.
func (p partition) String() string {
	if p.seq != 0 {
		return fmt.Sprintf("worker type %q, key %d, %d operations", p.workerType, p.seq, len(p.ops))
	}
	return fmt.Sprintf("worker type %q, %d operations", p.workerType, len(p.ops))
}
