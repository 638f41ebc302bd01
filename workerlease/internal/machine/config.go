package machine

import (
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// Config does not change while a worker runs. The caller sets all fields, including
// defaults.
type Config struct {
	Rules        *Rules // shared by many workers, and never changed
	WorkerType   string
	InstanceID   string
	Group        string
	Priority     int
	TieBreak     priority.TieBreak
	Schedule     slots.Schedule
	Shortest     time.Duration // of the slots, as far as is known; 0: not at all
	Lead, Step   time.Duration // 0: by the length of the slot
	Margin       time.Duration
	Failover     time.Duration // how soon after its holder's death a slot is taken over; 0: never
	Continuous   bool          // the winner of successive slots goes on without an end
	NoFailback   bool          // and claims each next slot before all others
	Once         bool          // the work of each slot is done once
	MaxAttempts  int           // at a slot, by all workers together; 0: no limit
	LeastRetry   time.Duration // from a failed attempt to the next one, doubled by each; 0: see MinRetry
	StartWithin  time.Duration // how late the first attempt at a slot may begin; 0: as long as the slot lasts; or DefaultStart
	Finishes     bool          // a run that its slot is too short for goes on into the next ones
	Timeout      time.Duration // of a run; 0: none
	CatchUp      CatchUp       // missed slots that are run late
	CatchUpFrom  time.Duration // how long ago such a slot may have started; 0: a day, or the length of the slot
	Joins        bool          // a worker that starts takes what is left of the slot, if nobody has it
	Single       bool          // the worker contends only for the slot in which it starts
	MinBackoff   time.Duration
	MaxBackoff   time.Duration
	Checks       bool          // there is a check of the user's, which takes up to CheckTimeout
	CheckEvery   time.Duration // is how long its answer counts
	CheckTimeout time.Duration
	KeepsUnfit   bool          // a holder that is no longer fit works on
	Stall        time.Duration // a holder whose code shows no progress for so long steps down; 0: none does
	Retention    time.Duration
	Trigger      Trigger // whose run the machine claims
	Follows      bool    // the store compares the record below the one that is appended
	Worker       store.Worker
	Metadata     string
	Work         string
}

// lead is how long before a slot's boundary its claims open.
func (c *Config) lead(slot slots.Slot) time.Duration {
	return c.leadAfter(c.Schedule.At(slot.Start.Add(-1)).Length())
}

// leadAfter is the lead of a slot that follows one of a length.
func (c *Config) leadAfter(length time.Duration) time.Duration {
	lead := priority.Lead(length, c.Lead)
	if c.Failover > 0 {
		lead = min(lead, c.Failover/2)
	}
	return lead
}

// opens is when claims for a slot open.
func (c *Config) opens(slot slots.Slot) time.Time { return slot.Start.Add(-c.lead(slot)) }

// identity is by what the records of a claim of this worker are recognised.
func (c *Config) identity(claim string) Identity {
	return Identity{Claim: claim, InstanceID: c.InstanceID, Group: c.Group}
}

// CatchUp is which missed slots are run late.
type CatchUp int

// The missed slots that are run late, as in workerlease.CatchUp.
const (
	CatchUpNone CatchUp = iota
	CatchUpNewest
	CatchUpAll
)
