package workerlease

import (
	"fmt"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/option"
)

// resolve fills in the defaults, given the store: slots and a FailoverWithin that is set must not be too short for what the store
// knows of the time, and one that comes with a Job is raised to that.
func (c *Client) resolve(o Options) (Options, option.Errors) {
	resolved, errs := o.resolve()
	floor := c.described.FailoverFloor
	if len(errs) > 0 || floor == 0 {
		return resolved, errs
	}
	shortest := slots.Shortest(resolved.Schedule)
	slotted := "Schedule"
	if o.Schedule == nil {
		slotted = "LeaseInterval"
	}
	// What a worker reports as TooUncertain by what it measures is refused here by what the store promises.
	known := floor / 8
	if least := machine.MinWindow(known, resolved.Margin); shortest < least {
		errs.Add(option.Error{
			Field: slotted, Found: fmt.Sprintf("makes slots of %v", shortest),
			Rule: fmt.Sprintf("they are too short for this store, by which the time is known to ±%v: must be longer than 2 × that and Margin (%v)", round(known), round(least)),
		})
		return resolved, errs
	}
	margin := o.Margin
	if margin == 0 { // It grows with FailoverWithin.
		margin = max(min(shortest/100, maxMargin), MinMargin)
	}
	floor = up(machine.MinUsefulFailover(known, margin))
	if resolved.FailoverWithin == 0 || resolved.FailoverWithin >= floor {
		return resolved, errs
	}
	if o.FailoverWithin > 0 {
		errs.Is("FailoverWithin", o.FailoverWithin, "must be 0 (none), or at least %v on this store, which knows the time too poorly for shorter parts of a slot", floor)
		return resolved, errs
	}
	if floor > shortest/2 {
		errs.Add(option.Error{
			Field: slotted, With: []string{"Job"}, Found: fmt.Sprintf("makes slots of %v, and Job is set", shortest),
			Rule: fmt.Sprintf("they are too short for others to try again on this store, which knows the time poorly: must be at least %v", 2*floor),
		})
		return resolved, errs
	}
	o.FailoverWithin = floor
	return o.resolve()
}
