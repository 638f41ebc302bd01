package app

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/estimate"
	"github.com/slotlease/slotlease/workerlease"
)

// planFlags are the options of plan.
type planFlags struct {
	scheduleFlags

	workers     int
	lead, step  time.Duration
	failover    time.Duration
	consistency string
	asJSON      bool
}

func (a *app) planCommand() *cobra.Command {
	f := &planFlags{workers: 3, consistency: estimate.Strong}
	c := &cobra.Command{
		Use:   "plan --store KIND (--every DURATION | --cron SPEC [--zone ZONE])",
		Short: "Estimate what workers will cost: operations, requests, request units",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o := a.planOptions(c, f)
			if err := a.usage(c); err != nil {
				return err
			}
			if f.asJSON {
				return display.WriteJSON(a.shown, estimate.Of(o).Report(), true)
			}
			a.printf("%s", estimate.Of(o).Text(a.colour()))
			return nil
		},
	}
	a.planFlags(c, f)
	return needsStore(c)
}

// planOptions are the options of the estimate. What is wrong is noted.
func (a *app) planOptions(c *cobra.Command, f *planFlags) estimate.Options {
	o := estimate.Options{Consistency: f.consistency, Workers: f.workers, Slot: f.every}
	o.Store, o.Unbilled = a.planKind(c)
	o.Timing, _ = a.timing(workerlease.Options{
		WorkerType: "plan", Schedule: a.schedule(f.scheduleFlags, c.Flags(), "plan"), Lead: f.lead, Step: f.step, FailoverWithin: f.failover,
	})
	if floor := estimate.Floor(o.Store); f.failover > 0 && f.failover < floor {
		a.bad("--failover-within is %v: must be at least %v on %s, which knows the time too poorly for shorter parts of a slot", f.failover, floor, o.Store)
	}
	if estimate.CountsRequests(o.Store) {
		if c.Flags().Changed("consistency") {
			a.bad("--consistency: %s has one level alone", o.Store)
		}
		o.Consistency = ""
	}
	return o
}

func (a *app) planFlags(c *cobra.Command, f *planFlags) {
	flags := c.Flags()
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "interval" { // as in LeaseInterval
			name = "every"
		}
		return pflag.NormalizedName(name)
	})
	option(a, flags, &f.workers, "workers", "N", "how many workers contend (default 3)", number(1, 100_000))
	a.scheduleFlags(flags, &f.scheduleFlags)
	option(a, flags, &f.lead, "lead", "DURATION", "how long before a boundary claims open (default a quarter of the slot, at most 10s and half of --failover-within)", anyDuration)
	option(a, flags, &f.step, "step", "DURATION", "distance between the turns of two priorities (default lead/10)", anyDuration)
	option(a, flags, &f.failover, "failover-within", "DURATION", "how soon others take over a slot whose worker dies: 80ms to half a slot (default: they don't)", nonZero)
	levels := []string{estimate.Strong, estimate.BoundedStaleness, estimate.Session, estimate.ConsistentPrefix, estimate.Eventual}
	option(a, flags, &f.consistency, "consistency", "LEVEL", "consistency at which the account is read: "+strings.Join(levels, ", ")+" (default strong)", oneOf(levels...))
	choose[string](flags, "consistency", levels...)
	a.jsonFlag(flags, &f.asJSON, "table", "it")
}

// planKind reads the kind of the store, and whether it bills no request units. What is wrong is noted.
func (a *app) planKind(c *cobra.Command) (kind string, unbilled bool) {
	n, ok := a.named(c)
	if !ok {
		return "", false
	}
	kind, err := estimate.KindOf(n.text)
	switch {
	case n.from == "":
		a.bad("%w", err)
		a.try = "--store cosmos"
	case err != nil && n.text == "":
		a.bad("%s: is empty: give --store cosmos", n.from)
	case err != nil:
		a.bad("%s: %w", n.from, err)
	}
	return kind, kind == estimate.Mongo && !estimate.BillsUnits(n.text)
}
