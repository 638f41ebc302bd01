package supervise

import (
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/workerlease/event"
)

// observer passes what happens to a worker on to the command and the log.
type observer struct {
	log      *runlog.Log
	extended func(event.Lease)
	refusals *refusals
	also     event.Observer // may be nil
}

// Observe passes an event on. The command comes first. None of them blocks: leasing waits for this.
func (o observer) Observe(e event.Event) {
	if e, ok := e.(event.Extended); ok {
		o.extended(e.Lease)
	}
	o.refusals.observe(e)
	o.log.Observe(e)
	if o.also != nil {
		o.also.Observe(e)
	}
}
