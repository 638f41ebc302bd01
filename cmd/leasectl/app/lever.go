package app

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
)

// leverJSON documents what all levers print.
const leverJSON = `With --output json it prints one object:

  workerType, seq   the record that was written
  kind, target      of the order: pause, prefer, release or drain, and whom it is about
  ends              true if it ends an earlier order
  at, until, now    when it was given, when it ends by itself, and whether what is held is
                    meant, too
  by, why           who gave it, and the reason; why is left out if there is none
  heard, heardBy    when workers read it, for people, and by when; heardBy is left out if
                    it isn't known, or if the order ends before that
  undo              the command that ends it before its time; left out if nothing is to be ended
  warning           a name that nobody is known to have, or an end of what wasn't in force;
                    left out if there is none

Times are RFC 3339 in UTC with milliseconds.`

// leverParts says which options a lever has.
type leverParts struct {
	lasts, now    bool
	worksWithout  bool // without a worker type
	asks          string
	required      string // an option besides --worker-type
	requiredUsage string
}

// lever makes a command one that gives an order.
func (a *app) lever(c *cobra.Command, o *lever.Options, p leverParts, run func(c *cobra.Command) error) {
	output := "table"
	o.Timeout = defaultTimeout
	c.Args = noArgs
	flags := c.Flags()
	flags.SortFlags = false
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !c.Flags().Changed("worker-type") && !p.worksWithout {
			a.bad("--worker-type is missing")
		}
		if p.required != "" && !c.Flags().Changed(p.required) {
			a.bad("--%s is missing: %s", p.required, p.requiredUsage)
		}
		if until, length := flags.Lookup("until"), flags.Lookup("for"); p.lasts && until.Changed == length.Changed {
			a.bad("give one of --until and --for: an order ends by itself")
		}
		if !o.Yes && !isTerminal(a.stdin) {
			o.Ask = nil
		}
		o.By, o.JSON = operator(), output == "json"
		return run(c)
	}
	o.Ask = func(question string) (string, error) { return a.ask(c.Context(), question) }
	usage := "worker type (required)"
	if p.worksWithout {
		usage = "worker type (default: all that the roster has workers of on the host)"
	}
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", usage, workerType)
	if p.lasts {
		option(a, flags, &o.Until, "until", "TIME", "when it ends, in store time, such as 2026-03-02T12:00:00Z", instant)
		option(a, flags, &o.For, "for", "DURATION", "how long it lasts from now on, in place of --until", duration(time.Millisecond, 366*24*time.Hour))
	}
	if p.now {
		flags.BoolVar(&o.Now, "now", false, "at once: "+p.asks)
	}
	option(a, flags, &o.Reason, "reason", "TEXT", "why, for people who look at the ledger later", nonEmpty)
	option(a, flags, &output, "output", "table|json", "how to show what was written (default table)", oneOf("table", "json"))
	option(a, flags, &o.Timeout, "timeout", "DURATION", "how long to wait for the store (default 10s)", duration(time.Millisecond, time.Hour))
}
