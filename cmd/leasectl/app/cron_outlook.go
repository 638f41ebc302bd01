package app

import (
	"sync/atomic"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/listen"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/supervise"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// showing are the workers of all jobs that there are now, for those outside: those of begun or, before there are any, what is
// to come.
func showing(jobs []cronJob, begun *atomic.Pointer[supervise.Jobs]) func() []listen.Worker {
	var pending []listen.Worker
	for _, j := range jobs {
		o := j.timing.Options
		pending = append(pending, listen.Worker{Worker: listen.Pending(event.Worker{WorkerType: o.WorkerType, InstanceID: o.InstanceID}), Schedule: o.Schedule})
	}
	return func() (all []listen.Worker) {
		now := begun.Load()
		if now == nil {
			return pending
		}
		now.Each(func(w *workerlease.WorkerLease, o workerlease.Options) {
			all = append(all, listen.Worker{Worker: w, Schedule: o.Schedule})
		})
		return all
	}
}
