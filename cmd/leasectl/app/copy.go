package app

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/workerlease/move"
)

const copyHelp = `Move a worker type to another store, without two holders.

It pauses the worker type, copies the newest records, waits until nobody holds the lease on
the old store, and ends the pause on the new one. So workers there go on where those on the old
one have left off, with a larger token, and with what is done; no slot has a holder on both. The
old store stays paused for 366 days. It is asked first, unless --yes is given.

  1. leasectl copy --store OLD --to NEW --worker-type TYPE
  2. Start the workers with the new store, and stop those with the old one, in any order.

Workers that are started with the new store before the first step have slots of their own
there: then the command refuses. After an error it may be repeated, and goes on; to give it up,
end the pause on the old store with leasectl resume. The clocks of the stores may be a minute
apart. If an operator has paused the worker type, end that first. Preferences and drains come
along; if there are others on the new store, the command refuses: give them on the old one first.
Move it from the store where its workers are: nobody knows by the old one where it went. The
command creates what is missing on the new store, as leasectl init does. Older records are for
people, and copied when workers may claim already.

With --output json it prints one object:

  workerType      the worker type
  copied          how many records were copied
  seq, token      the newest of them
  pausedUntil     when the pause on the old store ends
  apartMs         how far the new store's clock is ahead, in milliseconds`

func (a *app) copyCommand() *cobra.Command {
	o, output, to, toFile := lever.Options{Timeout: 24 * time.Hour}, "table", "", ""
	c := &cobra.Command{
		Use:   "copy --worker-type TYPE --to STORE",
		Short: "Move a worker type to another store",
		Long:  copyHelp,
		Example: `  leasectl copy --store sqlite:leases.db --to postgres://app@db.example/jobs --worker-type invoice-export
  leasectl copy --to-file /run/secrets/new-store --worker-type invoice-export --now --yes`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.target(c)
			if !c.Flags().Changed("worker-type") {
				a.bad("--worker-type is missing")
			}
			other := a.otherTarget(c, to, toFile)
			if err := a.usage(c); err != nil {
				return err
			}
			if !o.Yes && !isTerminal(a.stdin) {
				o.Ask = nil
			}
			o.By, o.JSON = operator(), output == "json"
			return lever.Copy(c.Context(), t, other, o, a.shown, a.told())
		},
	}
	o.Ask = func(question string) (string, error) { return a.ask(c.Context(), question) }
	flags := c.Flags()
	flags.SortFlags = false
	option(a, flags, &o.WorkerType, "worker-type", "TYPE", "worker type (required)", workerType)
	option(a, flags, &to, "to", "STORE", "the new store, in the forms of --store", nonEmpty)
	option(a, flags, &toFile, "to-file", "FILE", "the same, in a file: where a password belongs", nonEmpty)
	flags.BoolVar(&o.Now, "now", false, "at once: the holder stops when it reads the pause")
	option(a, flags, &o.History, "history", "N", "how many of the newest records are copied, at least 16 (default: all)", number(1, 1_000_000))
	option(a, flags, &o.Reason, "reason", "TEXT", "why, for people who look at the ledgers later", nonEmpty)
	option(a, flags, &output, "output", "table|json", "how to show what was done (default table)", oneOf("table", "json"))
	flags.BoolVar(&o.Yes, "yes", false, "don't ask")
	option(a, flags, &o.Timeout, "timeout", "DURATION", "how long it may take, with the wait for the end of the slot (default 24h)", duration(time.Second, move.MostWait))
	return c
}

// otherTarget reads the store that --to or --to-file names, and notes its problems.
func (a *app) otherTarget(c *cobra.Command, text, file string) (t storeuri.Target) {
	given, givenFile := c.Flags().Changed("to"), c.Flags().Changed("to-file")
	if given == givenFile {
		a.bad("give one of --to and --to-file: the new store")
		return t
	}
	parse, from := storeuri.Parse, "--to"
	var err error
	if givenFile {
		parse, from = storeuri.ParseFile, "--to-file"
		if text, err = storeuri.ReadFile(c.Context(), file); err != nil {
			a.bad("--to-file %q: %w", file, err)
			return t
		}
	}
	secret.AddURI(&a.secrets, text)
	t, err = parse(text, a.getenv)
	a.noStore(from, err)
	t.File = file
	return t
}
