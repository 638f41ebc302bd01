package machine

import (
	"time"

	"github.com/slotlease/slotlease/internal/ledger"
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
	// Rules decide which records are obeyed.
	ledger.Rules

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
	// it is to claim the rest, and group is its group, if it has one.
	Entry func(join bool, group string) Entry
	// Uncounts reports that the release of a head takes back the attempt which that counts as, given the head's claim as it
	// was sent. Breaking it shows as work that is begun more often than it may be, or too seldom.
	Uncounts func(head store.Record, of Sent) bool
	// Spares reports that an attempt which ended so doesn't count against MaxAttempts. Breaking it shows as work that is given up
	// though it never failed, or that is tried too often.
	Spares func(o store.Outcome) bool
	// MayStart reports that the first attempt at a slot may begin at a time, given up to when it may; the zero
	// time means as long as the slot lasts. Breaking it shows as work that begins too late, or never.
	MayStart func(at, by time.Time) bool
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
	// Knows are the ways in which a worker notices that records were lost which it knows, and Outlived is when nobody
	// works any more under such records: see outlived.
	Knows    Knowing
	Outlived func(end, begins time.Time, part time.Duration) time.Time
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
	// Again is how long a worker leaves a slot to others after its code has failed there, given the lead, how often that was and
	// how long the slot is. Breaking it shows as a worker that is alone, and begins what fails over and over.
	Again func(lead time.Duration, failed int, slot time.Duration) time.Duration
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

	// Oldest is the start of the oldest slot that may be run late, given the oldest by how long ago that was, when the
	// slot began that was attempted last, and the end of the newest one that is done. Breaking it shows as work that is
	// done twice, or too often.
	Oldest func(from, attempted, done time.Time) time.Time
	// Finishes reports that the work of a term may go on after its slot, and Exceeds that a run has taken longer than
	// it may. Breaking them shows as work that is cut or never is.
	Finishes func(t Term) bool
	Exceeds  func(ran, most time.Duration) bool
	// Outlasts reports that the run of a grant may go on into a slot, and may yet keep that from others. Breaking it shows
	// as runs that are cut at a boundary, which somebody else has claimed.
	Outlasts func(grant store.Record, slot slots.Slot, now timeline.Interval) bool
	// Settle is orders without the trigger that was given at a time, when its run is done or given up. Breaking it
	// shows as runs that an operator has asked for once and that come again.
	Settle func(orders string, at time.Time) string
	// Closes reports that a trigger's run, which began at a time, came when the own work of a slot was over. Breaking it
	// shows as slots that are tried again after it, more often than they may be.
	Closes func(begun time.Time, slot slots.Slot) bool
	// IsDone reports that a slot of a schedule, nil if that isn't known, is done by what the head
	// carries. Breaking it shows as slots whose work is done twice, or never.
	IsDone func(head Carried, slot slots.Slot, by slots.Schedule) bool
	// Obey is what the orders that are in force mean to a worker of a host. Asks reports that the
	// holder of a term is asked to give it up. Precedence is the priority of a worker while one is
	// preferred, and whether it goes first among equals. Breaking them shows as claims in a pause,
	// leases that end, and slots of another worker, not as an overlap.
	Obey       func(orders []store.Order, host string) Levers
	Asks       func(l Levers, t Term) bool
	Precedence func(preferred bool, p int, first bool, lowest int) (int, bool)
	// HearAgain is how soon a worker that an order keeps from its slot reads the head again: the order may have
	// ended. Breaking it shows as slots that nobody has, although nobody is kept from them any more.
	HearAgain func(failover time.Duration) time.Duration
	// Granted is the grant of the term in a head, and GivenBack reports that its holder has given that up, whatever was
	// said of it since. Breaking them shows as members that don't join their group or begin too early, and as attempts
	// that come too soon.
	Granted   func(head store.Record) (grant store.Record, ok bool)
	GivenBack func(head store.Record) bool
	// DoneAfter is the slot that is said to be done after a head, when the work of a slot has ended which went on into done.
	// Breaking it shows as slots that are done by nobody, since another worker has begun and not finished them.
	DoneAfter func(work, done slots.Slot, head store.Record, by slots.Schedule) slots.Slot
	// Died reports that the holder of the attempt that a head shows has gone without a word, given whether anything was
	// said of the attempt. It is asked once that is over. Breaking it shows as deaths of workers that live.
	Died func(head store.Record, said bool) bool
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
	// TrimEvery: a worker trims when it wins a Seq that this divides. It is a prime, so that
	// no pattern of grants and releases keeps every worker from ever winning one.
	TrimEvery int64

	// Reset is the time of the record that supersedes poison, and its token, given the
	// record that was in force below the poison (the zero Record if there is none).
	Reset func(below store.Record, now timeline.Interval) (at time.Time, token int64)
}

// Standard are the rules that workers run under.
var Standard = Rules{
	Rules: ledger.Standard,

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

	MayStart: mayStart,
	Uncounts: uncounts,
	Spares:   spares,

	Abandon: abandon,
	StandBy: standBy,
	Wait:    wait,

	ClaimAge:  time.Hour,
	Start:     start,
	Hinted:    hinted,
	Gap:       gap,
	MayExtend: mayExtend,
	Token:     token,
	Knows:     ByAppend | ByRead | ByMemory | ByHistory,
	Outlived:  outlived,
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
	Again:      retry,
	Recall:     recall,
	Rank:       bounded,
	Counts:     func(every time.Duration) time.Duration { return every },

	Granted:   granted,
	GivenBack: givenBack,
	DoneAfter: doneAfter,
	Died:      died,

	Oldest:   oldest,
	Finishes: finishes,
	Exceeds:  exceeds,
	Outlasts: outlasts,

	IsDone: isDone,
	Settle: store.WithoutTrigger,
	Closes: closes,
	Carry:  carry,
	Repeat: repeat,

	Obey:       obey,
	Asks:       asks,
	Precedence: prefers,
	HearAgain:  hearAgain,

	CloseSoon: 250 * time.Millisecond,
	Defers:    true,
	Retry:     retry,
	Pause:     pause,

	TrimBelow: trimBelow,
	TrimEvery: 53,

	Reset: resetAt,
}

// MinRetention is the least time that records are kept: twice the age of a
// claim.
const MinRetention = 2 * time.Hour
