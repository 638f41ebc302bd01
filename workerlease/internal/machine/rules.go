package machine

import (
	"time"

	"github.com/slotlease/slotlease/internal/terms"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Rules are the protocol as a value. Each decision that "at most one holder works at any
// moment, and tokens only grow" rests on is a field here, and so is each decision about
// whose turn it is to claim, and for how long: a number, or a small pure function. The
// rest of the machine asks the rules, and makes no such decision by itself. What tests can
// break from outside, in records on their way to the ledger, is no field.
//
// All workers run under [Standard]; its functions give the reasons. Only tests use others,
// with one rule broken, and check that this is noticed.
type Rules struct {
	// BeginBy is the edge of store time that must have reached the start of a
	// window for it to be worked under; EndBy the edge that must not have reached
	// its Last moment.
	BeginBy, EndBy timeline.Edge
	// Last is the moment before a window's end at which work must have stopped.
	Last func(end time.Time, margin time.Duration) time.Time
	// Await is what may not happen while the user's code runs.
	Await Acts
	// Looks are the occasions on which the loop checks again whether store time is
	// Inside.
	Looks Looks

	// Jumped reports that samples of store time have contradicted each other since
	// seen jumps were counted: then no lease is held. This is caution on top of
	// Settled: until then the interval contains both times. Breaking it shows as leases
	// that go on, not as an overlap.
	Jumped func(seen, now int) bool
	// Settled reports that a jump is past.
	Settled func(at Moment, c Clock) bool
	// Unchanged says that it must be the head that was read before that has ended then, and not
	// another one.
	Unchanged bool
	// Confirm is how many samples in a row decide between clocks that contradict each other.
	// Breaking it shows as slots that nobody has for one wrong answer.
	Confirm int
	// Fresh: nothing is claimed when the newest sample of store time is older. Samples are the
	// occasions on which the time is sampled before anything else. Breaking them shows as slots
	// that are claimed too late, or by a wrong time.
	Fresh   time.Duration
	Samples Samples
	// InDoubt is what a worker goes on with while samples contradict one another, or others may
	// still act by a clock that has jumped. Breaking it shows as slots that nobody has, and as work
	// that is done twice.
	InDoubt Doings
	// Reaims says that a bid turns to its slot, or to another, anew when it is decided which of the
	// samples were wrong. Breaking it shows as workers that look at nothing for as long as one was
	// wrong by.
	Reaims bool

	// Turn is how long after the opening of claims for a slot a worker may claim: p is
	// its priority, held reports that it had what comes before, and draw is drawn anew
	// for each turn. Breaking it shows as claims before their turn, not as an overlap.
	Turn func(l priority.Turns, p int, tie priority.TieBreak, held bool, draw uint64) time.Duration
	// Spread bounds how far apart two workers' claims can land that are meant for one instant
	// of store time, given the uncertainty of store time, and how much longer appends take
	// than is allowed for: the steps of the turn schedule are twice that, if the lead allows
	// it. Breaking it shows as claims before their turn.
	Spread func(uncertainty, latency time.Duration) time.Duration
	// Landing is how long a claim takes until others see it: reading the head, the append's
	// way there and, unless it is timed, sampling the time first. The claim of a slot that has
	// not begun is begun as much before its turn. Breaking it shows as slots that a lower
	// priority has, because it is nearer to the store.
	Landing func(t Trips, timed bool) time.Duration
	// Timeout is how long an operation may take, given how long it usually may, and at
	// most, and the longest that one of its kind took of late. Breaking it shows as slots
	// that nobody has, because the store is slow.
	Timeout func(usual, most, longest time.Duration) time.Duration
	// Entry is how a worker takes part in the slot in which it starts: join reports that
	// it was asked to claim the rest, and group is its group, if it has one.
	Entry func(join bool, group string) Entry
	// Abandon is when a slot that nobody is known to have is given up, and is missed.
	// Claims for the slot after it open at opens. Giving up sooner leaves the rest unused.
	Abandon func(slot slots.Slot, opens time.Time) time.Time

	// StandBy is when a worker that finds a slot taken up to end is to look at it again.
	// The zero time means that it turns to the next slot, for which claims open at opens.
	// failover is how soon a standby is to take over from a holder that has died, 0 if
	// none is. Breaking it shows as slots that nobody takes over, or as too many reads.
	StandBy func(end, opens time.Time, now timeline.Interval, failover time.Duration) time.Time
	// Wait is how long the loop waits when it has nothing to do for d. Breaking it makes
	// the loop spin.
	Wait func(d time.Duration) time.Duration

	// ClaimAge: a claim that is not known to be one's own this long after it was
	// fixed is void. It is shorter than the least retention, so that a record which was
	// stored late, at a key that trimming had opened again, is never worked under.
	ClaimAge time.Duration
	// Start is the start of the window of a grant that is appended to a head.
	Start func(c Claim, head store.Record) time.Time
	// Hinted is a head that was read because of a hint, as it is judged. Like other heads, it
	// alone says what is in force.
	Hinted func(head store.Record, now timeline.Interval) store.Record
	// Gap reports that a grant from start on would leave a gap after the head that its
	// holder may still fill.
	Gap func(start time.Time, head store.Record, now timeline.Interval) bool
	// MayExtend reports that the holder of the term in the head may yet extend it. Then
	// the rest of its slot is not claimed, not even from the end of its window on:
	// windows would be disjoint, but a living holder would lose its slot. Breaking it
	// shows as that, not as an overlap.
	MayExtend func(head store.Record, now timeline.Interval) bool
	// Token is the fencing token of a new term.
	Token func(start time.Time, head store.Record) int64
	// Outcome is the outcome of an append, as far as its error shows.
	Outcome func(err error) Outcome
	// Mine reports that a record comes from the claim of an identity, and Kin that
	// it gives its window to the identity's group.
	Mine, Kin func(r store.Record, id Identity) bool
	// Resend is the record to send, and the claim it is sent under, after an append was
	// found absent.
	Resend func(c Claim, sent store.Record, at Moment) (Claim, store.Record)
	// Term is what a grant gives to a worker that contends for a slot; own reports that
	// the grant is to the worker itself, and not to another of its group.
	Term func(r store.Record, own bool, slot slots.Slot) Term

	// Extend reports that an identity may extend a term of its own after a head.
	Extend func(t Term, head store.Record, id Identity) bool
	// Prolong reports that an extension, made under the term that was held then, may be
	// sent now, or sent again; held is the term that is held now, zero if none is.
	Prolong func(held Term, extension store.Record) bool
	// Releasable reports that an identity may release the term in the head, and
	// ReleaseAt is the time from which on it is free then.
	Releasable func(head store.Record, id Identity) bool
	ReleaseAt  func(head store.Record, now timeline.Interval) time.Time
	// Resume reports that a term which was left may be worked under again, because of its
	// newest record: an extension that is known now, or a release that was sent and is not in
	// the ledger.
	Resume func(left Term, r store.Record) bool
	// Heeds is what a worker doesn't do while its user's check finds it unfit. Breaking it shows
	// as leases of workers that are not fit.
	Heeds Acts
	// StepBack is for how many slots the worker lets others go first after its code has failed in so
	// many slots in a row.
	StepBack func(failures int) int
	// Recall is what a worker remembers of the troubles of a process whose place it takes. Breaking it
	// shows as a crash loop that has slot after slot.
	Recall func(t Trouble) Trouble
	// Rank is the place among others by which a worker claims, given what its client has found and the
	// worker's own priority. Breaking it shows as claims out of their order, not as an overlap.
	Rank func(r Rank, own int) Rank
	// Counts is how long an answer of that check counts, where one is to be had so often.
	Counts func(every time.Duration) time.Duration
	// GivesBack is what a worker releases of what it has won and doesn't use. Breaking it shows
	// as slots that nobody has, although somebody could.
	GivesBack Unused

	// IsDone reports that a slot is done, by what the head carries.
	IsDone func(head Carried, slot slots.Slot) bool
	// Obey is what the orders that are in force mean to a worker of a host. Asks reports that the
	// holder of a term is asked to give it up. Precedence is the priority of a worker while one is
	// preferred, and whether it goes first among equals. Breaking them shows as claims in a pause,
	// leases that end, and slots of another worker, not as an overlap.
	Obey       func(orders []store.Order, host string) Levers
	Asks       func(l Levers, t Term) bool
	Precedence func(preferred bool, p int, first bool, lowest int) (int, bool)
	// Carry is what a record repeats of the head that it is appended to.
	Carry func(head store.Record) Carried
	// Repeat makes a record that changes no term repeat the one in the head. Breaking it shows as
	// a lease that ends, or passes to another worker, by what is only for information.
	Repeat func(r, head store.Record) store.Record
	// CloseSoon bounds the wait between the first attempts to record that work is done, and the
	// time that most reads get for it on a store that was fast. Defers says that a worker that takes
	// over after an outage waits for such a record. Breaking them shows as work that is done twice.
	CloseSoon time.Duration
	Defers    bool
	// Retry is how long after an attempt that failed the next one comes, given Job.MinRetry, how
	// many have failed, and how long the slot is. Breaking it shows as attempts without end.
	Retry func(least time.Duration, failed int, slot time.Duration) time.Duration
	// Pause is how long a worker waits if the store asks for it, given the longest that costs one
	// slot. Breaking it shows as slots that nobody has.
	Pause func(asked, most time.Duration) time.Duration

	// TrimBelow is the Seq below which a record justifies trimming, 0 if it does
	// not.
	TrimBelow func(r store.Record, now timeline.Interval, retention time.Duration) int64
	// Keep is the number of the newest records that are never trimmed. A worker trims
	// when it wins a Seq that TrimEvery divides: a prime, so that no pattern of grants
	// and releases keeps every worker from ever winning one.
	Keep, TrimEvery int64

	// Poison reports why a head can't be obeyed, nil if it can, given Ahead and
	// Longest: how far from now a window may start, and how long it may be.
	Poison         func(head store.Record, now timeline.Interval, ahead, longest time.Duration) error
	Ahead, Longest time.Duration
	// Contradicts reports why a record can't follow the one below it, which can be obeyed,
	// nil if it can. Then it is poison, although it can be read.
	Contradicts func(below, r store.Record) error
	// Dated reports that a reset was written at its ReadAt, as far as a record below it shows.
	Dated func(reset, below store.Record) bool
	// Leads reports that no key is free between two records, the lower of which is the
	// zero Record if nothing is below. A record above a free key is not followed.
	Leads func(lower, upper store.Record) bool
	// Patience is how long poison is watched, on top of the longer of one's own slot, up to
	// a day, and Span. Span is how long windows of poison may be in force, newest first: one may be
	// a grant that only this worker can't read or obey.
	Patience time.Duration
	Span     func(poison []store.Record) time.Duration
	// Reset is the time of the record that supersedes poison, and its token, given the
	// record that was in force below the poison (the zero Record if there is none).
	Reset func(below store.Record, now timeline.Interval) (at time.Time, token int64)
}

// Standard are the rules that workers run under.
var Standard = Rules{
	BeginBy: timeline.Earliest,
	EndBy:   timeline.Latest,
	Last:    last,
	Await:   Beginning | Claiming | Releasing,
	Looks:   AtStart | AtTimer | AtQuestion | AtRetry,

	Jumped:  jumped,
	Settled: settled,

	Unchanged: true,
	Confirm:   timeline.Confirm,
	Fresh:     2 * time.Minute,
	Samples:   IfSingle | IfIdle | IfWide | IfApart | IfAhead,
	InDoubt:   Contending | Recording,
	Reaims:    true,

	Turn:    turn,
	Spread:  spread,
	Landing: landing,
	Timeout: timeout,
	Entry:   entry,
	Abandon: abandon,
	StandBy: standBy,
	Wait:    wait,

	ClaimAge:  time.Hour,
	Start:     start,
	Hinted:    hinted,
	Gap:       gap,
	MayExtend: mayExtend,
	Token:     token,
	Outcome:   outcome,
	Mine:      mine,
	Kin:       kin,
	Resend:    resend,
	Term:      term,

	Extend:     extend,
	Prolong:    prolong,
	Releasable: releasable,
	ReleaseAt:  releaseAt,
	Resume:     resume,
	GivesBack:  AfterJump | WhileOverrun | AfterStepDown,
	Heeds:      Claiming | Beginning | Holding | Stalling,
	StepBack:   stepBack,
	Recall:     recall,
	Rank:       bounded,
	Counts:     func(every time.Duration) time.Duration { return every },

	IsDone: isDone,
	Carry:  carry,
	Repeat: repeat,

	Obey:       obey,
	Asks:       asks,
	Precedence: prefers,

	CloseSoon: 250 * time.Millisecond,
	Defers:    true,
	Retry:     retry,
	Pause:     pause,

	TrimBelow: trimBelow,
	Keep:      terms.Keep,
	TrimEvery: 53,

	Poison:      poison,
	Ahead:       terms.Ahead,
	Longest:     terms.Longest,
	Contradicts: terms.Contradicts,
	Dated:       terms.Dated,
	Leads:       terms.Leads,
	Patience:    5 * time.Minute,
	Span:        span,
	Reset:       resetAt,
}

// MinRetention is the least time that records are kept: twice the age of a
// claim.
const MinRetention = 2 * time.Hour
