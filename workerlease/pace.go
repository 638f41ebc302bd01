package workerlease

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
)

// floor is the least FailoverWithin that the store's clock is good enough for; 0 if there is none.
func (c *Client) floor() time.Duration {
	if p, ok := c.ledger.(store.Paced); ok {
		return p.FailoverFloor()
	}
	return 0
}

// resolve fills in the defaults, given the store: a FailoverWithin that is set must not be below the store's floor,
// and one that comes with a Job is raised to it.
func (c *Client) resolve(o Options) (Options, optionErrors) {
	resolved, errs := o.resolve()
	floor := c.floor()
	if len(errs) > 0 || resolved.FailoverWithin == 0 || resolved.FailoverWithin >= floor {
		return resolved, errs
	}
	if o.FailoverWithin > 0 {
		errs.is("FailoverWithin", o.FailoverWithin, "must be 0 (none), or at least %v on this store, which knows the time too poorly for shorter parts of a slot", floor)
		return resolved, errs
	}
	if shortest := shortestSlot(resolved.Schedule); floor > shortest/2 {
		slotted := "Schedule"
		if o.Schedule == nil {
			slotted = "LeaseInterval"
		}
		errs.add(OptionError{
			Field: slotted, With: []string{"Job"}, found: fmt.Sprintf("makes slots of %v, and Job is set", shortest),
			Rule: fmt.Sprintf("they are too short for others to try again on this store, which knows the time poorly: must be at least %v", 2*floor),
		})
		return resolved, errs
	}
	o.FailoverWithin = floor
	return o.resolve()
}
