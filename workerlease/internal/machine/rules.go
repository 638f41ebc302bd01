package machine

import (
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Rules are the protocol as a value. Each decision that "at most one holder
// works at any moment, and tokens only grow" rests on is a field here, and each that
// says whose turn it is to claim, and how long: a number, or a small pure function. The
// rest of the machine asks them, and decides no such thing by itself.
//
// All workers run under [Standard], whose functions say why they are as they
// are. Only tests set another, with one rule broken, and see that it is noticed.
type Rules struct {
	// BeginBy is the edge of store time that must have reached the start of a
	// window for it to be worked under; EndBy the edge that must not have reached
	// its Last moment.
	BeginBy, EndBy timeline.Edge
	// Last is the moment of a window's end at which work must have stopped.
	Last func(end time.Time, margin time.Duration) time.Time
	// Await is what may not happen while the user's code runs.
	Await Acts
	// Looks are when the loop asks anew whether store time is Inside.
	Looks Looks

	// Jumped reports that samples of store time have contradicted each other since
	// so many jumps were counted: no lease is held then. This is caution on top of
	// Settled: up to then what is known contains both times, so that what shows when
	// it is broken is leases that go on, and no overlap.
	Jumped func(seen, now int) bool
	// Settled reports that a jump, or a change of server, is past: until is the end
	// of the head that was read first after it, zero if none was read.
	Settled func(now timeline.Interval, until time.Time) bool
	// Fresh: nothing is claimed when the newest sample of store time is older.
	Fresh time.Duration

	// Place is a worker's place on the turn schedule of a slot, counted from the opening, where
	// claims open: p is the worker's priority, held says that it had what comes before,
	// and draw is drawn anew for each place. What shows when this is broken is that
	// somebody claims before its turn, and no overlap.
	Turn func(l priority.Turns, p int, tie priority.TieBreak, held bool, draw uint64) time.Duration
	// Spread is how far apart two workers can be in acting at what each takes for one
	// instant, by how uncertain store time is to this one, and how long its appends took:
	// the steps of its turn schedule are twice that, if the lead allows it. What shows when this
	// is broken is that somebody claims before its turn.
	Spread func(uncertainty, latency time.Duration) time.Duration
	// Entry is what a worker may do in the slot in which it starts: join says that it
	// was asked to claim what is left, and group is its group, if it has one.
	Entry func(join bool, group string) Entry
	// Abandon is when a slot is given up that nobody is known to have: it is missed
	// then. Claims for the one after it open at opens. Whoever gives up sooner leaves
	// unused what it could have had.
	Abandon func(slot slots.Slot, opens time.Time) time.Time

	// StandBy is from when on a worker that finds a slot taken, up to end, is to look at it
	// again: the zero time if it isn't, but turns to the next slot, for which claims open
	// at opens. failover is how soon somebody is to take over from a holder that has died,
	// 0 if nobody is. What shows when this is broken is that nobody does, or how often all
	// ask the store.
	StandBy func(end, opens time.Time, now timeline.Interval, failover time.Duration) time.Time
	// Wait is how long the loop waits that has nothing to do for d. What shows when this is
	// broken is that it spins.
	Wait func(d time.Duration) time.Duration

	// ClaimAge: a claim that is not known to be one's own this long after it was
	// fixed is void. It is shorter than the least retention, so that a record
	// which landed late, on a key that trimming opened again, is never worked
	// under.
	ClaimAge time.Duration
	// Start is where the window of a grant begins that is appended to a head.
	Start func(c Claim, head store.Record) time.Time
	// Gap reports that a grant from start on would leave a gap behind the head
	// that its holder may still fill.
	Gap func(start time.Time, head store.Record, now timeline.Interval) bool
	// Living reports that the holder of the term in the head may yet extend it. What
	// is left of its slot is then not claimed, not even from the end of its window on:
	// windows would be disjoint, but whoever lives would lose its slot. So what shows
	// when this is broken is that, and no overlap.
	MayExtend func(head store.Record, now timeline.Interval) bool
	// Token is the fencing token of a new term.
	Token func(start time.Time, head store.Record) int64
	// Outcome is what the reply to an append tells of it.
	Outcome func(err error) Outcome
	// Mine reports that a record comes from the claim of an identity, and Kin that
	// it gives its window to the identity's group.
	Mine, Kin func(r store.Record, id Identity) bool
	// Resend is what is sent after an append was found absent, and under which
	// claim.
	Resend func(c Claim, sent store.Record, at Moment) (Claim, store.Record)
	// Term is what a grant gives, for a worker that contends for a slot; own
	// tells a grant to itself from one to its group.
	Term func(r store.Record, own bool, slot slots.Slot) Term

	// Extend reports that an identity may extend a term of its own behind a head.
	Extend func(t Term, head store.Record, id Identity) bool
	// Prolong reports that an extension, made under a term that was held then, may be
	// sent now, or sent again; held is the term that is held now, zero if none is.
	Prolong func(held Term, extension store.Record) bool
	// TakeUp reports that a term which was left may be worked under again, as an
	// extension of it is known now.
	TakeUp func(left Term, r store.Record) bool
	// Releasable reports that an identity may release the term in the head, and
	// ReleaseAt from when on it is free then.
	Releasable func(head store.Record, id Identity) bool
	ReleaseAt  func(head store.Record, now timeline.Interval) time.Time
	// Resume reports that a term which was left may be worked under again although its
	// release was sent, as that has failed and is not in the ledger.
	Resume func(left Term, release store.Record) bool

	// Done completes the record that tells that slots are done until a time, behind a
	// head; IsDone reports that what a head carries says so of one.
	Done   func(r, head store.Record, until time.Time) store.Record
	IsDone func(head Carried, slot slots.Slot) bool
	// Carry is what a record repeats of the head that it is appended to.
	Carry func(head store.Record) Carried

	// ReadAt is what a record says of the time at which its head was read, as of
	// right after that.
	ReadAt func(now timeline.Interval) time.Time
	// TrimBelow is the Seq below which a record justifies trimming, 0 if it does
	// not.
	TrimBelow func(r store.Record, now timeline.Interval, retention time.Duration) int64
	// Keep is how many of the newest records are never trimmed. A worker trims when
	// it wins a Seq that TrimEvery divides: a prime, so that no pattern of grants
	// and releases keeps everybody from ever winning one.
	Keep, TrimEvery int64

	// Poison says why a head can't be obeyed, nil if it can, given Ahead and
	// Longest: how far from now a window may start, and how long it may be.
	Poison         func(head store.Record, now timeline.Interval, ahead, longest time.Duration) error
	Ahead, Longest time.Duration
	// Leads reports that no key is free between two records, the lower of which is the
	// zero Record if nothing is below. Poison to which nothing leads is not followed.
	Leads func(lower, upper store.Record) bool
	// Patience is how long poison is watched, on top of the longer of one's own slot and
	// Span, which is as long as windows of poison may be in force, the newest of which
	// comes first: it may be a grant that only this worker can't read or obey.
	Patience time.Duration
	Span     func(poison []store.Record) time.Duration
	// Reset is where the record stands that supersedes poison, and its token, given
	// the record that was in force below the poison (the zero Record if there is
	// none).
	Reset func(below store.Record, now timeline.Interval) (at time.Time, token int64)
}

// Standard are the rules that workers run under.
var Standard = Rules{
	BeginBy: timeline.Earliest,
	EndBy:   timeline.Latest,
	Last:    last,
	Await:   Beginning | Claiming | Releasing,
	Looks:   AtStart | AtTimer | AtQuestion,

	Jumped:  jumped,
	Settled: settled,
	Fresh:   2 * time.Minute,

	Turn:    turn,
	Spread:  spread,
	Entry:   entry,
	Abandon: abandon,
	StandBy: standBy,
	Wait:    wait,

	ClaimAge:  time.Hour,
	Start:     start,
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
	TakeUp:     takeUp,
	Releasable: releasable,
	ReleaseAt:  releaseAt,
	Resume:     resume,

	Done:   done,
	IsDone: isDone,
	Carry:  carry,

	ReadAt:    readAt,
	TrimBelow: trimBelow,
	Keep:      100,
	TrimEvery: 53,

	Poison:   poison,
	Ahead:    time.Hour,
	Longest:  366 * 24 * time.Hour,
	Leads:    leads,
	Patience: 5 * time.Minute,
	Span:     span,
	Reset:    resetAt,
}

// MinRetention is the least time that records are kept: twice the age of a
// claim.
const MinRetention = 2 * time.Hour

// Acts are things that a worker does.
type Acts int

// The acts that Rules.Await is about.
const (
	// Beginning: telling the user's code of a lease. It runs once at a time.
	Beginning Acts = 1 << iota
	// Claiming: taking another slot, which might pass unused.
	Claiming
	// Releasing: giving the rest of a term to others, who begin at once.
	Releasing
)

// Looks are occasions to look at the time.
type Looks int

// The occasions that Rules.Looks is about. All of them look: between two looks
// any process may have stood still, with its timers.
const (
	// AtStart: right before LeaseAllocated.
	AtStart Looks = 1 << iota
	// AtTimer: once a second while a lease is held, where the clock tells boot time,
	// since timers stand still in a suspend.
	AtTimer
	// AtQuestion: when user code asks whether its lease is valid.
	AtQuestion
)
