package app

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
	"github.com/slotlease/slotlease/workerlease"
)

const trimHelp = `Delete old records of a worker type.

Workers do so by themselves, a batch now and then. It is for a type that has no workers any
more, or after a longer retention. Only records are deleted that a later one shows to be
older than --retention, which must be at least that of all workers; the newest 100 stay. It is
asked first, unless --yes is given.

With --output json it prints one object:

  workerType   the worker type
  deleted      how many records were deleted
  complete     false if it was cut short; the error says why`

func (a *app) trimCommand() *cobra.Command {
	o, output := lever.Options{Timeout: time.Minute, Retention: workerlease.DefaultRetention}, "table"
	c := &cobra.Command{
		Use:     "trim --worker-type TYPE",
		Short:   "Delete old records",
		Long:    trimHelp,
		Example: `  leasectl trim --worker-type invoice-export --retention 168h --yes`,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.awaited(c)
			if !c.Flags().Changed("worker-type") {
				a.bad("--worker-type is missing")
			}
			if err := a.usage(c); err != nil {
				return err
			}
			if !o.Yes && !isTerminal(a.stdin) {
				o.Ask = nil
			}
			o.JSON = output == "json"
			return lever.Trim(c.Context(), t, o, a.shown)
		},
	}
	o.Ask = func(question string) (string, error) { return a.ask(c.Context(), question) }
	flags := c.Flags()
	flags.SortFlags = false
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", "worker type (required)", workerType)
	option(a, flags, &o.Retention, "retention", "DURATION", "how long records are kept (default 24h)", duration(workerlease.MinRetention, 100*366*24*time.Hour))
	option(a, flags, &output, "output", "table|json", "how to show what was done (default table)", oneOf("table", "json"))
	flags.BoolVar(&o.Yes, "yes", false, "don't ask")
	option(a, flags, &o.Timeout, "timeout", "DURATION", "how long it may take (default 1m)", duration(time.Millisecond, 24*time.Hour))
	return c
}
