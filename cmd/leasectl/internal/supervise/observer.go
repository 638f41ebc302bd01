package supervise

import (
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/workerlease"
)

// observer passes what happens to a worker on to the command and the log.
type observer struct {
	log      *runlog.Log
	extended func(workerlease.Lease)
	refusals *refusals
	also     workerlease.Observer // may be nil
}

// Observe passes an event on. The command comes first: a log that is read slowly must
// not cost it its lease.
func (o observer) Observe(e workerlease.Event) {
	if e, ok := e.(workerlease.Extended); ok {
		o.extended(e.Lease)
	}
	o.refusals.observe(e)
	o.log.Observe(e)
	if o.also != nil {
		o.also.Observe(e)
	}
}
