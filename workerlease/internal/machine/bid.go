package machine

import (
	"slices"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// Stage is how far a bid has come.
type Stage int

// The stages.
const (
	// Aiming: waiting for the turn.
	Aiming Stage = iota
	// Reading: the claim is fixed, the head is to be read.
	Reading
	// Sending: Bid.Record is to be appended.
	Sending
	// Checking: the key of Bid.Record is to be read back, to learn the outcome of its
	// append.
	Checking
	// Halted: the worker is done.
	Halted
)

// String names the stage.
func (s Stage) String() string {
	return [...]string{"aiming", "reading", "sending", "checking", "halted"}[s]
}

// Role is the part that a worker plays in the slot it contends for.
type Role int

// The roles.
const (
	// Claimant: it claims the slot for itself.
	Claimant Role = iota
	// Joiner: it joins a lease of its group, but claims nothing.
	Joiner
	// Extender: it extends the term in force, within the slot or into it. Bid.Turn
	// is when the extension is due.
	Extender
	// Standby: another worker has the slot. Bid.Turn is when the rest of the slot may
	// be claimed.
	Standby
)

// Claim is one attempt to take a slot. It is fixed before the head is read and
// never changes on a retry.
type Claim struct {
	ID    string
	Start time.Time // raised to the end of the head when the record is made
	End   time.Time
	Fixed time.Time // Earliest(now) at fixing
	Local time.Duration
	Epoch int // of the time line
}

// Bid is the contention for one slot.
type Bid struct {
	Stage    Stage
	Slot     slots.Slot
	First    slots.Slot // the first slot that the worker contended for
	Came     time.Time  // when that was found
	Late     time.Time  // start of the newest slot that the worker came too late for, when it started
	Role     Role
	Turn     time.Time     // when the head may be read, unless Lands
	TurnEdge timeline.Edge // which edge of now must have reached Turn
	Lands    bool          // Turn is when the claim is to land, and the head is read before
	Timed    bool          // and the time was sampled for it
	// Recheck is the local reading, right after a jump has settled, at which to check
	// that Slot is not one far ahead; 0: there is nothing to check.
	Recheck time.Duration

	Claim          Claim
	ReadEpoch      int          // Clock.Epoch when the head was asked for
	Record         store.Record // the record being appended
	Below          store.Record // the record that it is appended to
	OutcomeUnknown bool         // Record may have been stored, or may yet be
	MissReason     Reason       // why Slot is being missed, if it is
	Dead           Dead         // the attempt before Record's, if its worker has gone without a word
	Kept, Passed   Passed       // the slots that Record gives up
	Barred         bool         // an order keeps the worker from Slot, and it looks again whether that has ended
	Outage         bool         // the store answers again after it had failed, or showed less than it had
	Narrowed       bool         // the time was sampled because it is too uncertain to claim
	Awaited        int          // the attempt that waited, after an outage, for a record that the slot is done

	// The rest outlasts the slot.

	Latency   time.Duration // of appends, on average; the newest counts for a quarter
	VoidClaim string        // a claim that was given up, although its record may be stored or may yet be
	Sent      [8]Sent       // the claims that were sent last, the newest first
	SkipSlot  time.Time     // start of the slot that this worker is through with
	YieldSlot time.Time     // start of the slot in which this worker lets others go first
	// YieldUntil is before when it doesn't claim that again, whoever has had it since: its code has failed there.
	YieldUntil time.Time
}

// Sent is a claim that was sent: its record may be stored, or may yet be.
type Sent struct {
	Claim   string
	Attempt int  // that it counts as
	Begun   bool // code was begun under it
}

// sent finds a claim among those that were sent last; nil: it isn't there.
func (b *Bid) sent(claim string) *Sent {
	if i := slices.IndexFunc(b.Sent[:], func(s Sent) bool { return s.Claim == claim }); claim != "" && i >= 0 {
		return &b.Sent[i]
	}
	return nil
}

// begun takes down whether code was begun under a claim.
func (b *Bid) begun(claim string, begun bool) {
	if s := b.sent(claim); s != nil {
		s.Begun = begun
	}
}

// unbegun reports that a claim was sent, and no code was begun under it.
func (b *Bid) unbegun(claim string) bool {
	s := b.sent(claim)
	return s != nil && !s.Begun
}

// drop forgets the claim. If the outcome of its append is unknown, it may still be
// stored.
func (b *Bid) drop() {
	if b.OutcomeUnknown && b.grants() {
		b.VoidClaim = b.Record.Claim
	}
	b.Stage, b.Claim, b.OutcomeUnknown, b.MissReason, b.Barred = Aiming, Claim{}, false, 0, false
	b.Record, b.Below, b.Dead, b.Kept, b.Passed = store.Record{}, store.Record{}, Dead{}, Passed{}, Passed{}
}

// void gives up a claim that got too old.
func (b *Bid) void() {
	b.VoidClaim = b.Claim.ID
	if b.grants() {
		b.VoidClaim = b.Record.Claim
	}
}

// wait drops the claim, and reads the head again at a time.
func (b *Bid) wait(until time.Time, edge timeline.Edge) {
	b.drop()
	b.Turn, b.TurnEdge, b.Lands = until, edge, false
}

// send makes a record the next to be appended, right after another.
func (b *Bid) send(r, below store.Record) {
	b.Record, b.Below, b.Stage = r, below, Sending
	if !b.grants() || b.extends() {
		return
	}
	if b.Sent[0].Claim != r.Claim {
		copy(b.Sent[1:], b.Sent[:])
	}
	b.Sent[0] = Sent{Claim: r.Claim, Attempt: r.Attempt} // At another key, the same claim may be another attempt.
}

// grants reports that the record being appended is a grant.
func (b *Bid) grants() bool { return b.Record.Kind == store.KindGrant }

// extends reports that the record being appended extends a term.
func (b *Bid) extends() bool { return b.grants() && b.Record.Claim != b.Claim.ID }

// skips reports that this worker is through with Slot.
func (b *Bid) skips() bool { return b.SkipSlot.Equal(b.Slot.Start) }

// stoodBy reports that the worker has told that another has Slot, and stands by. One that waits for what the store has lost has not.
func (b *Bid) stoodBy() bool { return b.Role == Standby && b.MissReason != WentBack }

// yields reports that others go first in Slot.
func (b *Bid) yields() bool { return b.YieldSlot.Equal(b.Slot.Start) }
