package machine

import (
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Rules are the constants of the protocol. They are a value so that tests can
// break them one at a time.
type Rules struct {
	// ClaimAge: a claim that is not known to be one's own this long after it was
	// fixed is void. It is shorter than the least retention, so that a record
	// which landed late, on a key that trimming opened again, is never worked
	// under.
	ClaimAge time.Duration
	// Fresh: nothing is claimed when the newest sample of store time is older.
	Fresh time.Duration
	// Ahead: a head that starts later than this from now is poison.
	Ahead time.Duration
	// Longest is the longest window that a valid record has.
	Longest time.Duration
	// Patience is how long poison is watched, on top of the longer of one's own
	// slot and the poison's window (which counts at most PatienceCap).
	Patience, PatienceCap time.Duration
	// Keep is how many of the newest records are never trimmed. A worker trims when
	// it wins a Seq that TrimEvery divides: a prime, so that no pattern of grants
	// and releases keeps everybody from ever winning one.
	Keep, TrimEvery int64
}

// Standard are the rules that workers run under.
var Standard = Rules{
	ClaimAge:    time.Hour,
	Fresh:       2 * time.Minute,
	Ahead:       time.Hour,
	Longest:     366 * 24 * time.Hour,
	Patience:    5 * time.Minute,
	PatienceCap: 24 * time.Hour,
	Keep:        100,
	TrimEvery:   53,
}

// MinRetention is the least time that records are kept.
const MinRetention = 2 * time.Hour

// Config is what does not change while a worker runs. All fields are set: the
// defaults are the caller's business.
type Config struct {
	Rules       Rules
	WorkerType  string
	InstanceID  string
	Group       string
	Priority    int
	TieBreak    priority.TieBreak
	Schedule    slots.Schedule
	Lead, Step  time.Duration // 0: by the length of the slot
	Margin      time.Duration
	JoinMidSlot bool
	Retention   time.Duration
	Worker      store.Worker
	Metadata    string
}

// Machine decides for one worker.
type Machine struct{ Config }

// Inside reports whether store time is surely inside the window, with margin to
// spare at its end: the condition for working.
func Inside(now timeline.Interval, start, end time.Time, margin time.Duration) bool {
	return now.Known() && !now.Earliest.Before(start) && !over(now, end, margin)
}

// over reports that a worker may not, or not any more, work in a window. The
// extra millisecond is the shortest wait: a timer for less is not worth setting.
func over(now timeline.Interval, end time.Time, margin time.Duration) bool {
	return !now.Latest.Add(margin + time.Millisecond).Before(end)
}

// ceil rounds up to a whole millisecond, as windows are.
func ceil(t time.Time) time.Time {
	if f := t.Truncate(time.Millisecond); f.Before(t) {
		return f.Add(time.Millisecond)
	}
	return t
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// lead is how long before a slot's boundary its claims open.
func (m Machine) lead(slot slots.Slot) time.Duration {
	return priority.Lead(m.Schedule.At(slot.Start.Add(-1)).Length(), m.Lead)
}

// Timeout is how long one ledger operation may take: long enough for a slow
// store, short enough to try again before the boundary.
func (m Machine) Timeout(s State) time.Duration {
	if s.Slot.IsZero() {
		return 5 * time.Second
	}
	return min(max(m.lead(s.Slot)/3, 250*time.Millisecond), 5*time.Second)
}

// Remaining is how long, by the local clock, store time stays surely inside a
// window that ends at end.
func Remaining(now timeline.Interval, end time.Time, margin time.Duration) time.Duration {
	return now.Until(end.Add(-margin-time.Millisecond), timeline.Latest)
}
