package workerlease

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// Options of a worker. Only WorkerType is required: the zero value of every
// other field is its default.
type Options struct {
	// WorkerType is what is competed for: 1 to 63 of A-Z a-z 0-9 . _ - and the
	// first a letter or a digit. All workers of a type should have the same
	// schedule; if they differ, they stay exclusive all the same, and it is
	// reported.
	WorkerType string

	// InstanceID labels this worker in records and logs. At most 256 bytes.
	// Default: host-pid-xxxx. It is a label only: two workers with one InstanceID
	// are still two workers.
	InstanceID string

	// Group makes workers share a lease on purpose: when one of a group wins a
	// slot, all of it are allocated, with one token; a member that starts in
	// mid-slot joins at once; nobody ever releases the group's lease. At most 256
	// bytes. Default: no group.
	Group string

	// Priority is 0 (the highest, the default) to 7. A lower priority gets its
	// turn one step later, all of them before the boundary.
	Priority int

	// TieBreak orders workers of one priority: Sticky (the default, the holder of
	// the slot before goes first), Rotate (it goes last) or Random.
	TieBreak priority.TieBreak

	// LeaseInterval is the length of the slots, aligned to the clock: whole
	// milliseconds, 100 ms to 366 days. Default: 5 min. Not with Schedule.
	LeaseInterval time.Duration

	// Schedule cuts time into slots another way, as slots.Cron does. Not with
	// LeaseInterval.
	Schedule slots.Schedule

	// FailoverWithin makes somebody else take over what is left of a slot when the
	// worker that has it dies: so long after its death at most, the turn of its
	// priority, what the store takes, and up to four times the uncertainty of store
	// time. What is left behind the last part of a slot, less than FailoverWithin and
	// Lead, is lost. The lease is then taken for a part of the slot at a time, and
	// extended a quarter of FailoverWithin (at most 5 min) before that ends: about
	// 4/3 × slot/FailoverWithin appends and a read every 2 min, and as many reads of each
	// other worker; and as many records are kept for Retention. At least 8 × Margin, and at
	// most half of the shortest slot. Default: the slot is lost. Not with Group.
	//
	// Work in a part of the slot begins when the uncertainty of store time has passed
	// (Status has it), and ends that much and Margin before the part does; the shortest
	// part, of a take-over, is a quarter of FailoverWithin. So it should be at least 8 ×
	// the uncertainty and 4 × Margin: about 1 s where the clocks of servers may be 100 ms
	// apart. With less, parts of slots are lost, or all of them. The uncertainty is known
	// only while leasing: the event TooUncertain tells, once, and so does Callbacks.Error.
	FailoverWithin time.Duration

	// Continuous makes the worker that wins successive slots go on from one to the
	// next: one lease, one token, and LeaseExtended in place of LeaseExpired and
	// LeaseAllocated. A worker of a higher priority still takes over at the next
	// boundary. Nobody works for a moment then: the one stops Margin and up to twice its
	// uncertainty of store time (Status.Uncertainty) before the boundary, and the other
	// begins up to twice its own behind it; some milliseconds of waking up apart. So it
	// is at every boundary without Continuous. Not with Group.
	Continuous bool

	// NoFailback, with Continuous, keeps the lease where it is for as long as its
	// worker lives: it goes on before anybody else may claim. All workers of the type
	// should have it.
	NoFailback bool

	// OncePerSlot, with Run, makes the task run once for each slot: when it returns
	// nil, the slot is done, and nobody runs it again. FailoverWithin, by which others
	// try again when a worker fails or dies, is then a quarter of the shortest slot by
	// default, at most a minute and at least 8 × Margin. All workers of the type should have one schedule: a
	// long slot that is done covers all shorter ones up to its end. Not with Group, nor
	// with Continuous.
	OncePerSlot bool

	// MaxAttempts is how often a slot is tried at most, by all workers together;
	// counted in the ledger when it is won. All workers of the type should have the
	// same. At most 1,000,000. Default: as often as its time allows. Only with
	// OncePerSlot.
	MaxAttempts int

	// RunMissed, with OncePerSlot, makes up for the newest slot that nobody did: in the
	// next one, the task is called for it first, and then for its own slot. It is called
	// once, whatever comes of that, and not at all if the worker dies that has claimed the
	// next slot. Slots before it are skipped, and so are those before the first that was
	// ever done; and so is every one by default. While a slot's work goes on, the next one
	// is not claimed before its boundary.
	RunMissed bool

	// MinBackoff and MaxBackoff bound how long a worker waits after an operation on the
	// ledger has come to nothing: the first wait, and the longest that doubling makes
	// of it, less up to half at random. An eighth of the slot bounds both. A store
	// that asks for more gets it. At least 1 ms. Default: 100 ms and 5 s.
	MinBackoff, MaxBackoff time.Duration

	// JoinMidSlot makes a worker claim what is left of the slot in which it
	// starts, if nobody has it. Default: it waits for the next boundary. A worker
	// that was there before the boundary, but couldn't reach the store, always
	// claims what is left.
	JoinMidSlot bool

	// Lead is how long before a boundary claims open: at most 5 min, and never
	// more than half of the slot before, or of FailoverWithin. Default: a quarter of
	// the slot before, at most 10 s and half of FailoverWithin.
	Lead time.Duration

	// Step is the distance between the turns of two priorities. Default: a tenth
	// of Lead. It is widened when the store is slow or its time uncertain, and
	// narrowed so that the last turn comes before the boundary.
	Step time.Duration

	// Margin is how long before the end of a window work stops, on top of the
	// uncertainty of store time. At least 10 ms and less than half a slot. Default:
	// a hundredth of the shortest slot and a twentieth of FailoverWithin, at most
	// 250 ms.
	Margin time.Duration

	// Retention is how long records are kept; at least 2 h. Default: 24 h. The
	// newest 100 are kept however old.
	Retention time.Duration

	// Metadata is stored with each claim, for people to read: at most 8 KiB.
	Metadata string
}

// DefaultRetention is how long records are kept by default.
const DefaultRetention = 24 * time.Hour

const (
	minMargin = 10 * time.Millisecond
	maxMargin = 250 * time.Millisecond

	defaultMinBackoff = 100 * time.Millisecond
	defaultMaxBackoff = 5 * time.Second

	// maxSchedule is what a record has room for.
	maxSchedule = 512
)

// filled returns the options with defaults in place, or all that is wrong.
func (o Options) filled() (Options, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if err := store.CheckWorkerType(o.WorkerType); err != nil {
		errs = append(errs, fmt.Errorf("WorkerType: %w", err))
	}
	for _, l := range []struct {
		field, value string
		most         int
	}{{"InstanceID", o.InstanceID, 256}, {"Group", o.Group, 256}, {"Metadata", o.Metadata, store.MaxMetadata}} {
		errs = append(errs, checkText(l.field, l.value, l.most))
	}
	if o.Priority < priority.Highest || o.Priority > priority.Lowest {
		bad("Priority: is %d: must be %d (highest) … %d", o.Priority, priority.Highest, priority.Lowest)
	}
	if o.TieBreak < priority.Sticky || o.TieBreak > priority.Random {
		bad("TieBreak: is %d: must be Sticky, Rotate or Random", int(o.TieBreak))
	}
	slotted := "Schedule" // the option that made the slots
	if o.Schedule == nil {
		slotted = "LeaseInterval"
		interval := o.LeaseInterval
		if interval == 0 {
			interval = slots.DefaultInterval
		}
		s, err := slots.Every(interval)
		if err != nil {
			errs = append(errs, fmt.Errorf("LeaseInterval: %w", err))
		}
		o.Schedule = s
	} else if o.LeaseInterval != 0 {
		bad("LeaseInterval: is %v, and Schedule is %.70q: set only one of them", o.LeaseInterval, o.Schedule)
	}
	if o.Schedule != nil {
		errs = append(errs, checkText("Schedule", o.Schedule.String(), maxSchedule), o.fillTimes(slotted))
	} else if o.Margin != 0 && o.Margin < minMargin {
		bad("Margin: is %v: must be 0 (default) or at least %v", o.Margin, minMargin)
	}
	if o.Lead < 0 || o.Lead > priority.MaxLead {
		bad("Lead: is %v: must be 0 (default) … %v", o.Lead, priority.MaxLead)
	}
	if o.NoFailback && !o.Continuous {
		bad("NoFailback: is set without Continuous: set both")
	}
	if o.Continuous && o.Group != "" && !o.OncePerSlot {
		bad("Continuous: is set, and Group is %.70q: a group's lease can't be extended: set only one of them", o.Group)
	}
	if o.FailoverWithin != 0 && o.Group != "" && !o.OncePerSlot {
		bad("FailoverWithin: is %v, and Group is %.70q: a group's lease can't be extended: set only one of them", o.FailoverWithin, o.Group)
	}
	if o.OncePerSlot && o.Group != "" {
		bad("OncePerSlot: is set, and Group is %.70q: a group works in each slot together: set only one of them", o.Group)
	}
	if o.OncePerSlot && o.Continuous {
		bad("OncePerSlot: is set, and Continuous too: a job of each slot doesn't go on into the next: set only one of them")
	}
	if o.MaxAttempts < 0 || o.MaxAttempts > store.MaxAttempt {
		bad("MaxAttempts: is %d: must be 0 (default) … %d", o.MaxAttempts, store.MaxAttempt)
	} else if o.MaxAttempts > 0 && !o.OncePerSlot {
		bad("MaxAttempts: is %d, without OncePerSlot: it needs OncePerSlot: set both", o.MaxAttempts)
	}
	if o.RunMissed && !o.OncePerSlot {
		bad("RunMissed: is set without OncePerSlot: set both")
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = max(defaultMaxBackoff, o.MinBackoff)
	}
	if o.MinBackoff == 0 {
		o.MinBackoff = min(defaultMinBackoff, o.MaxBackoff)
	}
	if o.MinBackoff < time.Millisecond || o.MaxBackoff < o.MinBackoff || o.MaxBackoff > time.Hour {
		bad("MinBackoff: is %v, and MaxBackoff %v: must be 1ms … 1h, and in order", o.MinBackoff, o.MaxBackoff)
	}
	if o.Step < 0 || o.Step > priority.MaxLead {
		bad("Step: is %v: must be 0 (default) … %v", o.Step, priority.MaxLead)
	}
	switch {
	case o.Retention == 0:
		o.Retention = DefaultRetention
	case o.Retention < machine.MinRetention:
		bad("Retention: is %v: must be 0 (default) or at least %v", o.Retention, machine.MinRetention)
	}
	if o.InstanceID == "" {
		o.InstanceID = defaultInstanceID()
	}
	return o, errors.Join(errs...)
}

// fillTimes sets the defaults of FailoverWithin and Margin, or says what is wrong with
// them, and with a Lead next to them. Whoever set OncePerSlot alone is told of that, and
// not of the FailoverWithin that comes of it; slotted is the option that made the slots.
func (o *Options) fillTimes(slotted string) error {
	shortest := shortestSlot(o.Schedule)
	if !o.OncePerSlot || o.FailoverWithin != 0 {
		return errors.Join(o.fillMargin(shortest), o.checkFailover(shortest))
	}
	o.FailoverWithin = max(min(shortest/4, time.Minute), machine.MinFailover(max(o.Margin, minMargin)))
	if err := o.fillMargin(shortest); err != nil {
		return err
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	d := o.FailoverWithin
	switch least := 2 * machine.MinFailover(minMargin); {
	case shortest < least:
		bad("%s: makes slots of %v, and OncePerSlot is set: they are too short for others to try again: must be at least %v",
			slotted, shortest, least)
	case d > shortest/2:
		bad("Margin: is %v: must be at most a sixteenth of the shortest slot (%v) with OncePerSlot, for others to try again",
			o.Margin, shortest/16)
	case o.Margin > machine.MaxFailoverMargin:
		bad("Margin: is %v: must be at most %v with OncePerSlot, whose leases are extended at most twice that before their end",
			o.Margin, machine.MaxFailoverMargin)
	case o.Lead > d/2:
		bad("Lead: is %v: must be at most %v with OncePerSlot, half of the FailoverWithin that comes with it (%v): set that as well for a longer one",
			o.Lead, d/2, d)
	}
	return errors.Join(errs...)
}

// fillMargin sets the default margin, or says what is wrong with the given one.
func (o *Options) fillMargin(shortest time.Duration) error {
	switch {
	case o.Margin == 0:
		o.Margin = min(shortest/100, maxMargin)
		if o.FailoverWithin > 0 {
			o.Margin = min(o.Margin, o.FailoverWithin/20)
		}
		o.Margin = max(o.Margin, minMargin)
	case o.Margin < minMargin || o.Margin >= shortest/2:
		return fmt.Errorf("Margin: is %v: must be 0 (default), or at least %v and less than half of the shortest slot (%v)",
			o.Margin, minMargin, shortest)
	}
	return nil
}

// checkFailover says what is wrong with FailoverWithin, given the margin.
func (o *Options) checkFailover(shortest time.Duration) error {
	d := o.FailoverWithin
	if d == 0 {
		return nil
	}
	var errs []error
	if least, most := machine.MinFailover(o.Margin), shortest/2; d < least || d > most {
		errs = append(errs, fmt.Errorf("FailoverWithin: is %v: must be 0 (none), or at least 8 × Margin (%v), so that a part of the slot can be extended in time, and at most half of the shortest slot (%v)",
			d, least, most))
	}
	if most := machine.MaxFailoverMargin; o.Margin > most {
		errs = append(errs, fmt.Errorf("Margin: is %v: must be at most %v with FailoverWithin, whose windows are extended at most twice that before their end", o.Margin, most))
	}
	if d > 0 && o.Lead > d/2 {
		errs = append(errs, fmt.Errorf("Lead: is %v: must be at most half of FailoverWithin (%v), which is lost when a worker dies that has claimed the next slot", o.Lead, d/2))
	}
	return errors.Join(errs...)
}

func (o Options) machine(rules machine.Rules) machine.Machine {
	return machine.Machine{Config: machine.Config{
		Rules:      rules,
		WorkerType: o.WorkerType, InstanceID: o.InstanceID, Group: o.Group,
		Priority: o.Priority, TieBreak: o.TieBreak, Schedule: o.Schedule,
		Lead: o.Lead, Step: o.Step, Margin: o.Margin, JoinMidSlot: o.JoinMidSlot,
		Once: o.OncePerSlot, MaxAttempts: o.MaxAttempts, RunMissed: o.RunMissed, MinBackoff: o.MinBackoff, MaxBackoff: o.MaxBackoff,
		Failover: o.FailoverWithin, Continuous: o.Continuous, NoFailback: o.NoFailback,
		Retention: o.Retention, Metadata: o.Metadata,
		Worker: store.Worker{Host: host(), PID: os.Getpid(), Version: Version()},
	}}
}

func host() string {
	h, err := os.Hostname()
	if err != nil || h == "" {
		return "unknown"
	}
	return strings.ToValidUTF8(h[:min(len(h), 200)], "")
}

func defaultInstanceID() string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%s-%d-%s", host(), os.Getpid(), hex.EncodeToString(b[:]))
}
