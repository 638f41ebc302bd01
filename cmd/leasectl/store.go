package main

import (
	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

// target reads --store, or the environment variable, and notes its problems.
func (a *app) target(c *cobra.Command) storeuri.Target {
	from, text := "--store", a.store
	if !c.Flags().Changed("store") {
		from, text = storeuri.Variable, a.getenv(storeuri.Variable)
	}
	if text == "" && from == storeuri.Variable {
		a.bad("no store: name one with --store or %s", storeuri.Variable)
		a.try = "--store sqlite:leases.db, or export " + storeuri.Variable + "=mongodb://…"
		return storeuri.Target{}
	}
	t, err := storeuri.Parse(text, a.getenv)
	if err != nil {
		a.bad("%s: %w", from, err)
	}
	t.InEnv = from == storeuri.Variable
	if t.Scheme == storeuri.SQLite {
		for _, name := range []string{t.Shown, t.Place(), t.Path()} {
			a.plain = append(a.plain, name)
			if word, ok := display.Word(name); ok {
				a.plain = append(a.plain, word)
			}
		}
	}
	return t
}
