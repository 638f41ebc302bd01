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

	// leastRetry bounds Job.MinRetry.
	leastRetry = 10 * time.Millisecond
)

// Resolved returns the options with every default filled in that doesn't depend on the
// slot, as a worker runs with them: Schedule in place of LeaseInterval, InstanceID,
// FailoverWithin and MinRetry of a Job, Margin, MinBackoff, MaxBackoff and Retention. A Lead or Step
// of 0 stays, as its default follows from the length of each slot: see [Timing]. Job is
// a copy. Resolved options resolve to themselves.
//
// If options are bad, the error wraps ErrOptions and one [OptionError] for each problem.
func (o Options) Resolved() (Options, error) {
	resolved, errs := o.resolve()
	if err := errs.join(); err != nil {
		return Options{}, fmt.Errorf("options of %.70q: %w: %w", o.WorkerType, ErrOptions, err)
	}
	return resolved, nil
}

// resolve fills in the defaults, and collects all problems.
func (o Options) resolve() (Options, optionErrors) {
	var errs optionErrors
	errs.workerType(o.WorkerType)
	errs.text("InstanceID", o.InstanceID, maxLabel)
	errs.text("Group", o.Group, maxLabel)
	errs.text("Metadata", o.Metadata, store.MaxMetadata)
	o.resolveLabels(&errs)
	if o.Priority < priority.Highest || o.Priority > priority.Lowest {
		errs.is("Priority", o.Priority, "must be %d (highest) … %d", priority.Highest, priority.Lowest)
	}
	if o.TieBreak < priority.Sticky || o.TieBreak > priority.Spread {
		errs.is("TieBreak", int(o.TieBreak), "must be Sticky, Rotate, Random or Spread")
	}
	slotted := o.resolveSchedule(&errs)
	if o.Schedule != nil {
		errs.text("Schedule", o.Schedule.String(), maxSchedule)
	}
	if o.Schedule != nil && errs.schedule(o.Schedule, typicalYear) {
		o.resolveTimes(slotted, &errs)
	} else if o.Margin != 0 && o.Margin < MinMargin {
		errs.is("Margin", o.Margin, "must be 0 (default) or at least %v", MinMargin)
	}
	if o.Lead < 0 || o.Lead > priority.MaxLead {
		errs.is("Lead", o.Lead, "must be 0 (default) … %v", priority.MaxLead)
	}
	if o.Step < 0 || o.Step > priority.MaxLead {
		errs.is("Step", o.Step, "must be 0 (default) … %v", priority.MaxLead)
	}
	o.checkTogether(&errs)
	if o.Job != nil {
		job := *o.Job
		o.Job = &job
		if job.MaxAttempts < 0 || job.MaxAttempts > store.MaxAttempt {
			errs.is("Job.MaxAttempts", job.MaxAttempts, "must be 0 (default) … %d", store.MaxAttempt)
		}
		switch {
		case job.MinRetry == 0:
			o.Job.MinRetry = DefaultMinRetry
		case job.MinRetry < leastRetry || job.MinRetry > time.Hour:
			errs.is("Job.MinRetry", job.MinRetry, "must be 0 (default) or %v … 1h", leastRetry)
		}
	}
	o.resolveEligible(&errs)
	o.resolveBackoff(&errs)
	switch {
	case o.Retention == 0:
		o.Retention = DefaultRetention
	case o.Retention < MinRetention:
		errs.is("Retention", o.Retention, "must be 0 (default) or at least %v", MinRetention)
	}
	if o.InstanceID == "" {
		o.InstanceID = defaultInstanceID()
	}
	return o, errs
}

// resolveLabels copies the labels, and checks them.
func (o *Options) resolveLabels(errs *optionErrors) {
	o.Labels = maps.Clone(o.Labels)
	if n := len(o.Labels); n > store.MaxLabels {
		errs.add(OptionError{Field: "Labels", Value: fmt.Sprint(n), found: fmt.Sprintf("has %d", n), Rule: fmt.Sprintf("at most %d allowed", store.MaxLabels)})
	}
	for _, name := range slices.Sorted(maps.Keys(o.Labels)) {
		if err := store.CheckLabel(name, o.Labels[name]); err != nil {
			rule := strings.TrimPrefix(err.Error(), store.ErrInvalid.Error()+": ")
			errs.add(OptionError{Field: "Labels", Value: name, found: fmt.Sprintf("has %.70q", name), Rule: rule, err: err})
		}
	}
}

// resolveSchedule makes the schedule of LeaseInterval, and returns the option that the
// slots come from.
func (o *Options) resolveSchedule(errs *optionErrors) (slotted string) {
	if o.Schedule != nil {
		if o.LeaseInterval != 0 {
			errs.add(OptionError{
				Field: "LeaseInterval", Value: o.LeaseInterval.String(), With: []string{"Schedule"}, Rule: "set only one of them",
				found: fmt.Sprintf("is %v, and Schedule is %.70q", o.LeaseInterval, o.Schedule),
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
		errs.is("LeaseInterval", o.LeaseInterval, "must be 0 (default), or whole milliseconds from %v to 366 days", slots.MinInterval)
		return "LeaseInterval"
	}
	o.Schedule, o.LeaseInterval = s, 0
	return "LeaseInterval"
}

// checkTogether checks options that exclude or need each other.
func (o *Options) checkTogether(errs *optionErrors) {
	if o.NoFailback && !o.Continuous {
		errs.add(OptionError{Field: "NoFailback", With: []string{"Continuous"}, found: "is set without Continuous", Rule: "set both"})
	}
	group := fmt.Sprintf("and Group is %.70q", o.Group)
	const extends = "a group's lease can't be extended: set only one of them"
	switch {
	case o.Job != nil && o.Group != "":
		errs.add(OptionError{
			Field: "Job", With: []string{"Group"}, found: "is set, " + group,
			Rule: "a group works in each slot together: set only one of them",
		})
	case o.Group != "":
		if o.Continuous {
			errs.add(OptionError{Field: "Continuous", With: []string{"Group"}, found: "is set, " + group, Rule: extends})
		}
		if o.FailoverWithin != 0 {
			errs.add(OptionError{
				Field: "FailoverWithin", Value: o.FailoverWithin.String(), With: []string{"Group"},
				found: fmt.Sprintf("is %v, %s", o.FailoverWithin, group), Rule: extends,
			})
		}
	}
	if o.Job != nil && o.Continuous {
		errs.add(OptionError{
			Field: "Job", With: []string{"Continuous"}, found: "is set, and Continuous too",
			Rule: "a job of each slot doesn't go on into the next: set only one of them",
		})
	}
}

// resolveEligible sets the defaults of the check, and checks them.
func (o *Options) resolveEligible(errs *optionErrors) {
	if o.ProgressWithin != 0 && o.ProgressWithin < leastCheck {
		errs.is("ProgressWithin", o.ProgressWithin, "must be 0 (none) or at least %v", leastCheck)
	}
	if o.Eligible == nil {
		errs.without("EligibleEvery", o.EligibleEvery != 0)
		errs.without("EligibleTimeout", o.EligibleTimeout != 0)
		errs.without("KeepIneligible", o.KeepIneligible)
		return
	}
	switch every := o.EligibleEvery; {
	case every == 0:
		o.EligibleEvery = defaultCheck
		if o.Schedule != nil {
			o.EligibleEvery = min(o.EligibleEvery, shortestSlot(o.Schedule)/8)
		}
		if o.FailoverWithin > 0 {
			o.EligibleEvery = min(o.EligibleEvery, o.FailoverWithin/4)
		}
		o.EligibleEvery = max(o.EligibleEvery, leastCheck)
	case every < leastCheck || every > time.Hour:
		errs.is("EligibleEvery", every, "must be 0 (default) or %v … 1h", leastCheck)
		return
	}
	switch timeout := o.EligibleTimeout; {
	case timeout == 0:
		o.EligibleTimeout = min(o.EligibleEvery/2, time.Second)
	case timeout < time.Millisecond || timeout > o.EligibleEvery:
		errs.is("EligibleTimeout", timeout, "must be 0 (default), or 1ms to EligibleEvery (%v)", o.EligibleEvery)
	}
}

// without adds that an option needs Eligible, if it is set.
func (errs *optionErrors) without(field string, set bool) {
	if set {
		errs.add(OptionError{Field: field, With: []string{"Eligible"}, found: "is set without Eligible", Rule: "set both"})
	}
}

func (o *Options) resolveBackoff(errs *optionErrors) {
	fits := func(field string, d time.Duration) bool {
		if d == 0 || d >= leastBackoff && d <= mostBackoff {
			return true
		}
		errs.is(field, d, "must be 0 (default) or 1ms … 1h")
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
		errs.add(OptionError{
			Field: "MinBackoff", Value: o.MinBackoff.String(), With: []string{"MaxBackoff"},
			found: fmt.Sprintf("is %v, and MaxBackoff %v", o.MinBackoff, o.MaxBackoff), Rule: "must be in order: MinBackoff at most MaxBackoff",
		})
	}
}

// resolveTimes sets the defaults of FailoverWithin and Margin, and checks them, and a Lead
// next to them. If FailoverWithin is the default of a Job, what doesn't fit it is reported
// of the option that was set; slotted is the option that the slots come from.
func (o *Options) resolveTimes(slotted string, errs *optionErrors) {
	shortest := shortestSlot(o.Schedule)
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
		errs.add(OptionError{
			Field: slotted, With: []string{"Job"}, found: fmt.Sprintf("makes slots of %v, and Job is set", shortest),
			Rule: fmt.Sprintf("they are too short for others to try again: must be at least %v", least),
		})
	case d > shortest/2:
		errs.is("Margin", o.Margin, "must be at most a sixteenth of the shortest slot (%v) with Job, for others to try again", shortest/16)
	case o.Margin > machine.MaxFailoverMargin:
		errs.is("Margin", o.Margin, "must be at most %v with Job, whose leases are extended at most twice that before their end", machine.MaxFailoverMargin)
	case o.Lead > d/2:
		errs.is("Lead", o.Lead, "must be at most %v with Job, half of the FailoverWithin that comes with it (%v): set that as well for a longer one", d/2, d)
	}
}

// resolveMargin sets the default margin, or checks the given one.
func (o *Options) resolveMargin(shortest time.Duration, errs *optionErrors) bool {
	switch {
	case o.Margin == 0:
		o.Margin = min(shortest/100, maxMargin)
		if o.FailoverWithin > 0 {
			o.Margin = min(o.Margin, o.FailoverWithin/20)
		}
		o.Margin = max(o.Margin, MinMargin)
	case o.Margin < MinMargin || o.Margin >= shortest/2:
		errs.is("Margin", o.Margin, "must be 0 (default), or at least %v and less than half of the shortest slot (%v)", MinMargin, shortest)
		return false
	}
	return true
}

// checkFailover checks a FailoverWithin that was set, given the margin.
func (o *Options) checkFailover(shortest time.Duration, errs *optionErrors) {
	d := o.FailoverWithin
	if d == 0 {
		return
	}
	if least, most := machine.MinFailover(o.Margin), shortest/2; d < least || d > most {
		errs.is("FailoverWithin", d, "must be 0 (none), or at least 8 × Margin (%v), so that a part of the slot can be extended in time, and at most half of the shortest slot (%v)", least, most)
	}
	if most := machine.MaxFailoverMargin; o.Margin > most {
		errs.is("Margin", o.Margin, "must be at most %v with FailoverWithin, whose windows are extended at most twice that before their end", most)
	}
	if d > 0 && o.Lead > d/2 {
		errs.is("Lead", o.Lead, "must be at most half of FailoverWithin (%v), which is lost when a worker dies that has claimed the next slot", d/2)
	}
}
