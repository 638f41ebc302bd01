package workerlease

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/option"
	"github.com/slotlease/slotlease/workerlease/internal/self"
)

const (
	maxMargin = 250 * time.Millisecond

	defaultMinBackoff = 100 * time.Millisecond
	defaultMaxBackoff = 5 * time.Second
	leastBackoff      = time.Millisecond
	mostBackoff       = time.Hour

	// maxLabel bounds InstanceID and Group, and maxSchedule the text of a schedule, which
	// is what a record has room for.
	maxLabel    = 256
	maxSchedule = 512

	// leastCheck bounds EligibleEvery and ProgressWithin.
	leastCheck   = 10 * time.Millisecond
	defaultCheck = 10 * time.Second

	// leastRetry bounds Job.MinRetry, leastTime its other times, and mostCatchUp its CatchUpWithin.
	leastRetry  = 10 * time.Millisecond
	leastTime   = 10 * time.Millisecond
	mostCatchUp = 366 * 24 * time.Hour
)

// Resolved returns the options with every default filled in that doesn't depend on the
// slot, as a worker runs with them: Schedule in place of LeaseInterval, InstanceID,
// FailoverWithin of a Job, Margin, MinBackoff, MaxBackoff and Retention. A Lead or Step
// of 0 stays, as its default follows from the length of each slot: see [Timing]. Job is
// a copy. Resolved options resolve to themselves.
//
// If options are bad, the error wraps ErrOptions and one [OptionError] for each problem.
func (o Options) Resolved() (Options, error) {
	resolved, errs := o.resolve()
	if err := errs.Join(); err != nil {
		return Options{}, fmt.Errorf("options of %.70q: %w: %w", o.WorkerType, ErrOptions, err)
	}
	return resolved, nil
}

// resolve fills in the defaults, and collects all problems.
func (o Options) resolve() (Options, option.Errors) {
	var errs option.Errors
	errs.WorkerType(o.WorkerType)
	errs.Text("InstanceID", o.InstanceID, maxLabel)
	errs.Text("Group", o.Group, maxLabel)
	errs.Text("Metadata", o.Metadata, store.MaxMetadata)
	errs.Text("Work", o.Work, store.MaxWork)
	o.resolveLabels(&errs)
	if o.Priority < priority.Highest || o.Priority > priority.Lowest {
		errs.Is("Priority", o.Priority, "must be %d (highest) … %d", priority.Highest, priority.Lowest)
	}
	if o.TieBreak < priority.Sticky || o.TieBreak > priority.Spread {
		errs.Is("TieBreak", int(o.TieBreak), "must be Sticky, Rotate, Random or Spread")
	}
	slotted := o.resolveSchedule(&errs)
	if o.Schedule != nil {
		errs.Text("Schedule", o.Schedule.String(), maxSchedule)
	}
	if o.Schedule != nil && checkSchedule(&errs, o.Schedule, typicalYear) {
		o.resolveTimes(slotted, &errs)
	} else if o.Margin != 0 && o.Margin < MinMargin {
		errs.Is("Margin", o.Margin, "must be 0 (default) or at least %v", MinMargin)
	}
	if o.Lead < 0 || o.Lead > priority.MaxLead {
		errs.Is("Lead", o.Lead, "must be 0 (default) … %v", priority.MaxLead)
	}
	if o.Step < 0 || o.Step > priority.MaxLead {
		errs.Is("Step", o.Step, "must be 0 (default) … %v", priority.MaxLead)
	}
	o.checkTogether(&errs)
	o.resolveJob(&errs)
	o.resolveEligible(&errs)
	o.resolveBackoff(&errs)
	switch {
	case o.Retention == 0 && o.Job != nil && o.Schedule != nil:
		o.Retention = JobRetention(slots.Shortest(o.Schedule))
	case o.Retention == 0:
		o.Retention = DefaultRetention
	case o.Retention < MinRetention:
		errs.Is("Retention", o.Retention, "must be 0 (default) or at least %v", MinRetention)
	}
	if o.InstanceID == "" {
		o.InstanceID = self.Label()
	}
	return o, errs
}

// resolveJob fills in the defaults of Job, in a copy of it.
func (o *Options) resolveJob(errs *option.Errors) {
	if o.Job == nil {
		if o.DrainTimeout != 0 {
			errs.Is("DrainTimeout", o.DrainTimeout, "goes with a Job only: a lease without one ends with its slot")
		}
		return
	}
	job := *o.Job
	o.Job = &job
	o.checkJob(errs)
	if job.MaxAttempts < 0 || job.MaxAttempts > store.MaxAttempt {
		errs.Is("Job.MaxAttempts", job.MaxAttempts, "must be 0 (default) … %d", store.MaxAttempt)
	}
	if job.MaxAttempts == 0 && job.CatchUp == CatchUpAll {
		o.Job.MaxAttempts = CatchUpAttempts
	}
	if d := o.DrainTimeout; d < 0 || d > mostCatchUp {
		errs.Is("DrainTimeout", d, "must be 0 (default) … %v", mostCatchUp)
	}
	if job.MinRetry != 0 && (job.MinRetry < leastRetry || job.MinRetry > time.Hour) {
		errs.Is("Job.MinRetry", job.MinRetry, "must be 0 (default) or %v … 1h", leastRetry)
	}
}

// checkJob checks a job's own times, and what it asks for.
func (o *Options) checkJob(errs *option.Errors) {
	job, most := o.Job, mostCatchUp
	if o.Schedule != nil {
		most = slots.Shortest(o.Schedule)
	}
	if d := job.StartWithin; d != 0 && (d < leastTime || d > most) {
		errs.Is("Job.StartWithin", d, "must be 0 (default), or %v to the shortest slot (%v)", leastTime, most)
	}
	if job.Overrun < Finish || job.Overrun > Stop {
		errs.Is("Job.Overrun", job.Overrun, "must be Finish or Stop")
	}
	o.checkTimeout(errs)
	if job.CatchUp < CatchUpNone || job.CatchUp > CatchUpAll {
		errs.Is("Job.CatchUp", job.CatchUp, "must be CatchUpNone, CatchUpNewest or CatchUpAll")
	}
	switch d := job.CatchUpWithin; {
	case d != 0 && (d < leastTime || d > mostCatchUp):
		errs.Is("Job.CatchUpWithin", d, "must be 0 (default), or %v to 366 days", leastTime)
	case d != 0 && job.CatchUp == CatchUpNone:
		errs.Add(option.Error{Field: "Job.CatchUpWithin", Value: d.String(), With: []string{"Job.CatchUp"}, Found: fmt.Sprintf("is %v, and Job.CatchUp is %v", d, job.CatchUp), Rule: "set that to newest or all"})
	case job.CatchUp != CatchUpNone && o.Schedule != nil:
		o.checkCatchUp(errs)
	}
}

// checkTimeout checks the bound of a run.
func (o *Options) checkTimeout(errs *option.Errors) {
	job := o.Job
	switch d := job.Timeout; {
	case d != 0 && d < leastTime:
		errs.Is("Job.Timeout", d, "must be 0 (none) or at least %v", leastTime)
	case d != 0 && job.Overrun == Stop && o.Schedule != nil && d >= longest(o.Schedule):
		errs.Add(option.Error{
			Field: "Job.Timeout", Value: d.String(), With: []string{"Job.Overrun"}, Found: fmt.Sprintf("is %v, and Job.Overrun is %v", d, job.Overrun),
			Rule: fmt.Sprintf("must be less than a slot (%v), at whose end the run is stopped anyway", longest(o.Schedule)),
		})
	}
}

// checkCatchUp checks that each slot can be missed before it is too old to be run late.
func (o *Options) checkCatchUp(errs *option.Errors) {
	job, c := o.Job, machine.Config{StartWithin: o.startWithin(), CatchUpFrom: o.Job.CatchUpWithin}
	lasts := func(d time.Duration) slots.Slot { return slots.Slot{Start: typicalYear, End: typicalYear.Add(d)} }
	start, late := c.StartsWithin(lasts(longest(o.Schedule))), c.CatchesUpWithin(lasts(slots.Shortest(o.Schedule)))
	switch {
	case late > start:
	case job.CatchUpWithin == 0:
		errs.Is("Job.StartWithin", job.StartWithin, "must be less than Job.CatchUpWithin (%v): no slot is missed before it is too old to be caught up", late)
	default:
		errs.Is("Job.CatchUpWithin", late, "must be more than Job.StartWithin (%v): no slot is missed before that", start)
	}
}

// longest is the length of the longest slot near typicalYear, as slots.Shortest is of the shortest one.
func longest(s slots.Schedule) (most time.Duration) {
	n := 0
	for slot := range slots.Upcoming(s, typicalYear) {
		most = max(most, slot.Length())
		if n++; n == 200 {
			break
		}
	}
	return most
}

// resolveLabels copies the labels, and checks them.
func (o *Options) resolveLabels(errs *option.Errors) {
	o.Labels = maps.Clone(o.Labels)
	if n := len(o.Labels); n > store.MaxLabels {
		errs.Add(option.Error{Field: "Labels", Value: fmt.Sprint(n), Found: fmt.Sprintf("has %d", n), Rule: fmt.Sprintf("at most %d allowed", store.MaxLabels)})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Labels)) {
		if err := store.CheckLabel(name, o.Labels[name]); err != nil {
			rule := strings.TrimPrefix(err.Error(), store.ErrInvalid.Error()+": ")
			errs.Add(option.Error{Field: "Labels", Value: name, Found: fmt.Sprintf("has %.70q", name), Rule: rule, Cause: err})
		}
	}
}

// resolveSchedule makes the schedule of LeaseInterval, and returns the option that the
// slots come from.
func (o *Options) resolveSchedule(errs *option.Errors) (slotted string) {
	if o.Schedule != nil {
		if o.LeaseInterval != 0 {
			errs.Add(option.Error{
				Field: "LeaseInterval", Value: o.LeaseInterval.String(), With: []string{"Schedule"}, Rule: "set only one of them",
				Found: fmt.Sprintf("is %v, and Schedule is %.70q", o.LeaseInterval, o.Schedule),
			})
		}
		return "Schedule"
	}
	interval := o.LeaseInterval
	if interval == 0 {
		interval = slots.DefaultInterval
	}
	s, err := slots.Every(interval)
	if err != nil {
		errs.Is("LeaseInterval", o.LeaseInterval, "must be 0 (default), or whole milliseconds from %v to 366 days", slots.MinInterval)
		return "LeaseInterval"
	}
	o.Schedule, o.LeaseInterval = s, 0
	return "LeaseInterval"
}

// checkTogether checks options that exclude or need each other.
func (o *Options) checkTogether(errs *option.Errors) {
	if o.NoFailback && !o.Continuous {
		errs.Add(option.Error{Field: "NoFailback", With: []string{"Continuous"}, Found: "is set without Continuous", Rule: "set both"})
	}
	group := fmt.Sprintf("and Group is %.70q", o.Group)
	const extends = "a group's lease can't be extended: set only one of them"
	switch {
	case o.Job != nil && o.Group != "":
		errs.Add(option.Error{
			Field: "Job", With: []string{"Group"}, Found: "is set, " + group,
			Rule: "a group works in each slot together: set only one of them",
		})
	case o.Group != "":
		if o.Continuous {
			errs.Add(option.Error{Field: "Continuous", With: []string{"Group"}, Found: "is set, " + group, Rule: extends})
		}
		if o.FailoverWithin != 0 {
			errs.Add(option.Error{
				Field: "FailoverWithin", Value: o.FailoverWithin.String(), With: []string{"Group"},
				Found: fmt.Sprintf("is %v, %s", o.FailoverWithin, group), Rule: extends,
			})
		}
	}
	if o.Job != nil && o.Continuous {
		errs.Add(option.Error{
			Field: "Job", With: []string{"Continuous"}, Found: "is set, and Continuous too",
			Rule: "a job of each slot doesn't go on into the next: set only one of them",
		})
	}
}

// resolveEligible sets the defaults of the check, and checks them.
func (o *Options) resolveEligible(errs *option.Errors) {
	if o.ProgressWithin != 0 && o.ProgressWithin < leastCheck {
		errs.Is("ProgressWithin", o.ProgressWithin, "must be 0 (none) or at least %v", leastCheck)
	}
	if o.Eligible == nil {
		without(errs, "EligibleEvery", o.EligibleEvery != 0)
		without(errs, "EligibleTimeout", o.EligibleTimeout != 0)
		without(errs, "KeepIneligible", o.KeepIneligible)
		return
	}
	switch every := o.EligibleEvery; {
	case every == 0:
		o.EligibleEvery = defaultCheck
		if o.Schedule != nil {
			o.EligibleEvery = min(o.EligibleEvery, slots.Shortest(o.Schedule)/8)
		}
		if o.FailoverWithin > 0 {
			o.EligibleEvery = min(o.EligibleEvery, o.FailoverWithin/4)
		}
		o.EligibleEvery = max(o.EligibleEvery, leastCheck)
	case every < leastCheck || every > time.Hour:
		errs.Is("EligibleEvery", every, "must be 0 (default) or %v … 1h", leastCheck)
		return
	}
	switch timeout := o.EligibleTimeout; {
	case timeout == 0:
		o.EligibleTimeout = min(o.EligibleEvery/2, time.Second)
	case timeout < time.Millisecond || timeout > o.EligibleEvery:
		errs.Is("EligibleTimeout", timeout, "must be 0 (default), or 1ms to EligibleEvery (%v)", o.EligibleEvery)
	}
}

// without adds that an option needs Eligible, if it is set.
func without(errs *option.Errors, field string, set bool) {
	if set {
		errs.Add(option.Error{Field: field, With: []string{"Eligible"}, Found: "is set without Eligible", Rule: "set both"})
	}
}

func (o *Options) resolveBackoff(errs *option.Errors) {
	fits := func(field string, d time.Duration) bool {
		if d == 0 || d >= leastBackoff && d <= mostBackoff {
			return true
		}
		errs.Is(field, d, "must be 0 (default) or 1ms … 1h")
		return false
	}
	least, most := fits("MinBackoff", o.MinBackoff), fits("MaxBackoff", o.MaxBackoff)
	if !least || !most {
		return
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = max(defaultMaxBackoff, o.MinBackoff)
	}
	if o.MinBackoff == 0 {
		o.MinBackoff = min(defaultMinBackoff, o.MaxBackoff)
	}
	if o.MinBackoff > o.MaxBackoff {
		errs.Add(option.Error{
			Field: "MinBackoff", Value: o.MinBackoff.String(), With: []string{"MaxBackoff"},
			Found: fmt.Sprintf("is %v, and MaxBackoff %v", o.MinBackoff, o.MaxBackoff), Rule: "must be in order: MinBackoff at most MaxBackoff",
		})
	}
}

// resolveTimes sets the defaults of FailoverWithin and Margin, and checks them, and a Lead
// next to them. If FailoverWithin is the default of a Job, what doesn't fit it is reported
// of the option that was set; slotted is the option that the slots come from.
func (o *Options) resolveTimes(slotted string, errs *option.Errors) {
	shortest := slots.Shortest(o.Schedule)
	if o.Job == nil || o.FailoverWithin != 0 {
		o.resolveMargin(shortest, errs)
		o.checkFailover(shortest, errs)
		return
	}
	o.FailoverWithin = max(min(shortest/4, time.Minute), machine.MinFailover(max(o.Margin, MinMargin)))
	if !o.resolveMargin(shortest, errs) {
		return
	}
	d := o.FailoverWithin
	switch least := 2 * machine.MinFailover(MinMargin); {
	case shortest < least:
		errs.Add(option.Error{
			Field: slotted, With: []string{"Job"}, Found: fmt.Sprintf("makes slots of %v, and Job is set", shortest),
			Rule: fmt.Sprintf("they are too short for others to try again: must be at least %v", least),
		})
	case d > shortest/2:
		errs.Is("Margin", o.Margin, "must be at most a sixteenth of the shortest slot (%v) with Job, for others to try again", shortest/16)
	case o.Margin > machine.MaxFailoverMargin:
		errs.Is("Margin", o.Margin, "must be at most %v with Job, whose leases are extended at most twice that before their end", machine.MaxFailoverMargin)
	case o.Lead > d/2:
		errs.Is("Lead", o.Lead, "must be at most %v with Job, half of the FailoverWithin that comes with it (%v): set that as well for a longer one", d/2, d)
	}
}

// resolveMargin sets the default margin, or checks the given one.
func (o *Options) resolveMargin(shortest time.Duration, errs *option.Errors) bool {
	switch {
	case o.Margin == 0:
		o.Margin = min(shortest/100, maxMargin)
		if o.FailoverWithin > 0 {
			o.Margin = min(o.Margin, o.FailoverWithin/20)
		}
		o.Margin = max(o.Margin, MinMargin)
	case o.Margin < MinMargin || o.Margin >= shortest/2:
		errs.Is("Margin", o.Margin, "must be 0 (default), or at least %v and less than half of the shortest slot (%v)", MinMargin, shortest)
		return false
	}
	return true
}

// checkFailover checks a FailoverWithin that was set, given the margin.
func (o *Options) checkFailover(shortest time.Duration, errs *option.Errors) {
	d := o.FailoverWithin
	if d == 0 {
		return
	}
	if least, most := machine.MinFailover(o.Margin), shortest/2; d < least || d > most {
		errs.Is("FailoverWithin", d, "must be 0 (none), or at least 8 × Margin (%v), so that a part of the slot can be extended in time, and at most half of the shortest slot (%v)", least, most)
	}
	if most := machine.MaxFailoverMargin; o.Margin > most {
		errs.Is("Margin", o.Margin, "must be at most %v with FailoverWithin, whose windows are extended at most twice that before their end", most)
	}
	if d > 0 && o.Lead > d/2 {
		errs.Is("Lead", o.Lead, "must be at most half of FailoverWithin (%v), which is lost when a worker dies that has claimed the next slot", d/2)
	}
}
