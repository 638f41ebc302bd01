package machine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Retries counts ledger operations that came to nothing.
type Retries struct {
	Failures    int           // operations that failed in a row
	Tries       int           // operations in a row that came to nothing, failed or not
	Until       time.Duration // the local reading up to which the worker backs off; 0: it doesn't
	Rereads     int           // how often the head was read again because of a conflict, in one slot
	SampleFirst bool          // after a failure: sample the time before anything else
	Twice       bool          // that succeeded: if what comes next fails, the try has taken two reads
	Answer      Reason        // why, if the newest failure was an answer: Denied or Barred; else 0
}

// closeTries is how often, before the waits double, it is tried to record that work is done: for
// the 6 s to 12 s that an election takes.
const closeTries = 24

// over forgets what came to nothing, since an operation has succeeded.
func (r *Retries) over() { r.Failures, r.Tries, r.Until, r.Answer, r.Twice = 0, 0, 0, 0, false }

// why is the reason for which a slot is missed while operations fail.
func (r *Retries) why() Reason {
	return cmp.Or(r.Answer, Unreachable)
}

// answer is why an operation failed if its error is an answer of the store, by which surely
// nothing was written; else 0. That nothing was stored is an answer to an append alone, and only if it was sent: a store
// says that also of what it could not send, since it has no connection.
func answer(op Op, err error) Reason {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(store.ErrDenied):
		return Denied
	case is(store.ErrRefused), is(store.ErrMissing), is(store.ErrInvalid), op == Appending && is(store.ErrNotStored) && !unsent(err):
		return Barred
	}
	return 0
}

// unsent reports that an operation which stored nothing failed for want of a connection, or of time for one.
func unsent(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	_, name := errors.AsType[*net.DNSError](err)
	late, timed := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return network || name || timed && late.Timeout() || errors.Is(err, io.EOF)
}

// pass ends the back-off once its time has come.
func (r *Retries) pass(local time.Duration) {
	if r.Until <= local {
		r.Until = 0
	}
}

// lookAgain backs off before the head is read again because of a conflict. If the reads are
// stale, the next append meets a conflict, too: each wait is longer.
func (x *step) lookAgain() {
	r := &x.s.Retries
	r.Tries = max(r.Tries, r.Rereads)
	r.Rereads++
	x.backOff(nil)
}

// failed counts an operation that failed, and backs off.
func (x *step) failed(op Op, err error) {
	x.s.Retries.Failures++
	x.s.Retries.Answer = answer(op, err)
	x.note(Note{What: Failed, Op: op, Err: err})
	x.backOff(err)
}

// backOff doubles the wait with each try in a row that came to nothing, up to
// MaxBackoff or an eighth of the slot (for an extension, of the time left for it),
// less up to half of it at random. A store that asks for more gets it, but no more than
// one slot.
func (x *step) backOff(err error) {
	s := x.s
	most := x.m.MaxBackoff
	if length := x.slotLength(); length > 0 {
		most = min(most, max(length/8, 10*time.Millisecond))
	}
	soon := time.Second / 2
	if s.Retries.Twice {
		most, soon, s.Retries.Twice = min(2*most, x.m.MaxBackoff), 2*soon, false
	}
	if s.Bid.Role == Extender && x.m.Failover > 0 && (s.Hold.holding() || s.Stopping && s.Closing.Done.IsZero()) {
		most = min(most, max(x.m.early()/8, 10*time.Millisecond))
	}
	recording := x.closing() && !s.Closing.Done.IsZero()
	if recording {
		// Others may run the work again until it is recorded. In an outage that lasts longer than an
		// election these waits double, too.
		most = min(most, x.m.Rules.CloseSoon<<min(s.Retries.Tries/closeTries, 10))
	}
	d := min(x.m.MinBackoff<<min(s.Retries.Tries, 10), most)
	spread := d / 2
	if d == most {
		// An outage goes on: it is looked at hardly more often than with two reads a second.
		spread = min(spread, d-min(d*4/5, soon))
	}
	d -= time.Duration(float64(spread) * x.fraction())
	if recording {
		d -= min(x.took, d) // What hangs is tried as often as what fails at once.
	}
	if t, ok := errors.AsType[*store.ThrottledError](err); ok {
		d = max(d, x.m.Rules.Pause(t.RetryAfter, x.longestPause()))
	}
	s.Retries.Tries++
	s.Retries.Until = x.at.Local + max(d, time.Millisecond)
}

// slotLength is the length of the bid's slot or, while the time is not known, of the
// shortest one; 0 if that isn't known either.
func (f facts) slotLength() time.Duration {
	if f.s.Bid.Slot.IsZero() {
		return f.m.Shortest
	}
	return f.s.Bid.Slot.Length()
}

// longestPause bounds what a store may ask for: a worker comes again when claims for
// another slot open, with up to a step at random, since all come then; and before any
// claim is void.
func (f facts) longestPause() time.Duration {
	most := f.m.Rules.ClaimAge
	if f.s.Bid.Slot.IsZero() {
		if f.m.Shortest > 0 {
			most = min(most, f.m.Shortest)
		}
		return most
	}
	mid := f.at.Now.Mid()
	next := f.m.Schedule.Next(mid)
	if !mid.Before(f.m.opens(next)) {
		next = f.m.Schedule.Next(next.Start)
	}
	spread := time.Duration(float64(f.turns().Step) * f.fraction())
	return min(most, f.m.opens(next).Sub(mid)+spread)
}

// pause waits as long as the store asks for, if that costs one slot at most.
func pause(asked, most time.Duration) time.Duration { return min(asked, most) }

// fraction is a draw in [0, 1).
func (f facts) fraction() float64 {
	return float64(binary.LittleEndian.Uint32(f.at.Draw[8:12])) / (1 << 32)
}
