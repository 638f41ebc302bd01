package app

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/workerlease/move"
)

func (a *app) copyCommand() *cobra.Command {
	o, to, toFile := lever.Options{Timeout: 24 * time.Hour}, "", ""
	var other storeuri.Target
	c := a.onStore("copy --worker-type TYPE --to STORE", "Move a worker type to another store", func(c *cobra.Command, t storeuri.Target) error {
		o.By, o.Ask = operator(), a.asker(c)
		return lever.Copy(c.Context(), t, other, o, a.shown, a.told())
	})
	c.PreRun = func(c *cobra.Command, _ []string) { other = a.otherTarget(c, to, toFile) }
	flags := c.Flags()
	a.typeFlag(flags, &o.WorkerType, "")
	option(a, flags, &to, "to", "STORE", "the new store, in the forms of --store", nonEmpty)
	option(a, flags, &toFile, "to-file", "FILE", "the same, in a file: where a password belongs", nonEmpty)
	flags.BoolVar(&o.Now, "now", false, "at once: the holder stops when it reads the pause")
	option(a, flags, &o.History, "history", "N", "how many of the newest records are copied, at least 16 (default: all)", number(1, 1_000_000))
	option(a, flags, &o.Reason, "reason", "TEXT", "why, for people who look at the ledgers later", nonEmpty)
	a.jsonFlag(flags, &o.JSON, "table", "what was done")
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
