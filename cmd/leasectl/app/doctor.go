package app

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/doctor"
)

const doctorHelp = `Find out whether a store is set up right, and what to do if it isn't.

There is a line for each check: ok, warn (workers go on, but see to it), fail (workers can't
use the store, or must not) or skip (it could not be found out, for the reason given); what
was found; and what to try. Nothing is changed in the store: a right is tried without storing
anything, or by what the store says of it. All is over within --timeout, whatever hangs.
Below, the store says what survives a crash, a loss of power and a failover: if records are
lost, two workers may get one slot.

If a check fails, the exit code is 11. The checks:

%s
With --output json it prints one object:

  store        the store, without secrets
  storeTime    time of the store's clock; left out if it can't be read
  sound        true if no check failed
  tookMs       how long it took
  checks       a list of
    check      its name; names don't change
    level      ok, warn, fail or skip
    text       what was found, for people
    remedy     what to try; left out if nothing is to be done
  durability   what survives of the records that the store acknowledged, in a
               sentence each; left out if the store doesn't say
    crash      when a process of the store dies
    power      when its machine loses power
    failover   when a copy takes over
  requestUnits the store's charges: total, and byOperation; left out if it charges nothing

Times are RFC 3339 in UTC with milliseconds.`

// checkList are the checks for the help.
func checkList() string {
	var b strings.Builder
	for _, c := range doctor.Checks() {
		asks := c.Asks
		if c.Of != "" {
			asks += " (" + c.Of + ")"
		}
		fmt.Fprintf(&b, "  %-20s %s\n", c.Name, asks)
	}
	return b.String()
}

func (a *app) doctorCommand() *cobra.Command {
	o := doctor.Options{Timeout: defaultTimeout, Scrub: a.scrub}
	output := "table"
	c := &cobra.Command{
		Use:   "doctor [--worker-type TYPE]",
		Short: "Find out whether it is set up right",
		Long:  fmt.Sprintf(doctorHelp, checkList()),
		Example: `  leasectl doctor
  leasectl doctor --output json | jq '.checks[] | select(.level == "fail")'`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.awaited(c)
			if err := a.usage(c); err != nil {
				return err
			}
			report, err := doctor.Examine(c.Context(), t, o)
			switch {
			case err != nil:
				return err
			case output == "json":
				if err := report.WriteJSON(a.shown); err != nil {
					return err
				}
			default:
				a.printf("%s", report.Text(a.colour()))
			}
			return report.Err()
		},
	}
	flags := c.Flags()
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", "worker type (default: all)", workerType)
	option(a, flags, &output, "output", "table|json", "how to show them (default table)", oneOf("table", "json"))
	option(a, flags, &o.Timeout, "timeout", "DURATION", "how long all checks may take (default 10s)", duration(100*time.Millisecond, time.Hour))
	return c
}
