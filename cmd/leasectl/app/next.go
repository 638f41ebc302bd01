package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/firings"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

func (a *app) nextCommand() *cobra.Command {
	n := &nextFlags{count: 5, timeout: defaultTimeout}
	c := &cobra.Command{
		Use:   "next (--every DURATION | --cron SPEC [--zone ZONE] | --worker-type TYPE)",
		Short: "Show the next slots of a schedule, or of a worker type",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := a.nextSlots(c, n)
			if err != nil {
				return err
			}
			return a.showNext(list, n)
		},
	}
	flags := c.Flags()
	a.scheduleFlags(flags, &n.scheduleFlags)
	flags.BoolVar(&n.oncePerSlot, "once-per-slot", false, "the slots have a job: show up to when it may begin")
	a.jobTimeFlags(flags, &n.job)
	option(a, flags, &n.workerType, "worker-type", "TYPE", "worker type whose schedule is read; with --spread: by whose name the place is chosen", workerType)
	option(a, flags, &n.count, "count", "N", "how many slots to show (default 5)", number(1, 1000))
	a.jsonFlag(flags, &n.asJSON, "table", "them")
	a.timeoutFlag(flags, &n.timeout, waitForStore, time.Hour)
	return needsStore(c)
}

// nextFlags are the flags of next.
type nextFlags struct {
	scheduleFlags

	workerType  string
	count       int
	timeout     time.Duration
	asJSON      bool
	oncePerSlot bool
	job         workerlease.Job
	said        *store.JobTimes // by a worker of the type; nil if none says, or flags do
}

// nextSlots are those of a schedule or of a worker type.
func (a *app) nextSlots(c *cobra.Command, n *nextFlags) (list firings.List, err error) {
	flags := c.Flags()
	if !n.oncePerSlot {
		a.goesOnlyWith(flags, "once-per-slot", jobTimes...)
	}
	if n.workerType == "" || flags.Changed("spread") {
		for _, named := range []string{"store", storeFile} {
			if flags.Changed(named) {
				a.bad("--%s: goes with --worker-type only, and not with --spread", named)
			}
		}
		schedule := a.schedule(n.scheduleFlags, flags, n.workerType)
		return firings.Of(schedule, n.workerType, time.Now(), n.count), a.usage(c)
	}
	for _, other := range []string{"every", "from", "cron", "zone", "except", "except-file"} {
		if flags.Changed(other) {
			a.bad("--%s: not with --worker-type, whose schedule is read", other)
		}
	}
	t := a.awaited(c)
	if err := a.usage(c); err != nil {
		return list, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), n.timeout)
	defer cancel()
	plan, err := inspect.PlanOf(ctx, t, n.workerType)
	if err != nil {
		return list, err
	}
	if plan.Schedule == "" {
		return list, exit.With(exit.Failure, errors.New("no schedule of "+n.workerType+" is known: it had no slot yet, and the roster has no worker of it"))
	}
	schedule, err := slots.Parse(plan.Schedule)
	if err != nil {
		return list, exit.With(exit.Failure, errors.New("the newest records of "+n.workerType+" name no schedule that can be read"))
	}
	list = firings.Of(schedule, n.workerType, plan.Now, n.count)
	list.Note = plan.Note
	if !n.oncePerSlot {
		n.said = plan.Job
	}
	return list, nil
}

func (a *app) showNext(l firings.List, n *nextFlags) error {
	switch j := n.said; {
	case n.oncePerSlot:
		t, ok := a.timing(workerlease.Options{WorkerType: "unnamed", Schedule: l.Schedule, Job: &n.job})
		if !ok {
			return exit.BadUsage("leasectl next --help", a.problems...)
		}
		l.StartWithin, l.Job = t.StartWithin, t.JobTimes()
	case j != nil:
		l.StartWithin, l.Job = func(s slots.Slot) time.Duration { return j.StartsWithin(s.Length()) }, j
	}
	if n.asJSON {
		return l.WriteJSON(a.shown)
	}
	_, err := fmt.Fprint(a.shown, l.Text(a.colour()))
	return err
}
