package app

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

// defaultTimeout bounds what one command asks of a store. Tests set it, before they run.
var defaultTimeout = 10 * time.Second

// onStore makes a command that asks a store. run is called when all options are good. What else may be wrong with
// them, PreRun of the command notes.
func (a *app) onStore(use, short string, run func(c *cobra.Command, t storeuri.Target) error) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: noArgs}
	c.Flags().SortFlags = false
	c.RunE = func(c *cobra.Command, _ []string) error {
		t := a.awaited(c)
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if why, required := f.Annotations[isRequired]; required && !f.Changed {
				a.bad("--%s is missing%s", f.Name, why[0])
			}
		})
		if err := a.usage(c); err != nil {
			return err
		}
		return run(c, t)
	}
	return needsStore(c)
}

// group is a command that does nothing but have others.
func (a *app) group(name, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.unknown(c, args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(commands...)
	return c
}

// isRequired marks an option that must be given, and says what to give.
const isRequired = "required"

// require marks an option as one that must be given.
func require(flags *pflag.FlagSet, name, why string) {
	if why != "" {
		why = ": " + why
	}
	flags.Lookup(name).Annotations = map[string][]string{isRequired: {why}}
}

// goesOnlyWith notes options that were given without the one that they go with.
func (a *app) goesOnlyWith(flags *pflag.FlagSet, other string, names ...string) {
	for _, name := range names {
		if text, ok := given(flags, name); ok {
			a.bad("--%s %q: goes with --%s only", name, text, other)
		}
	}
}

// typeFlag adds --worker-type. Without a default it is required.
func (a *app) typeFlag(flags *pflag.FlagSet, to *string, byDefault string) {
	usage := "worker type (required)"
	if byDefault != "" {
		usage = "worker type (default: " + byDefault + ")"
	}
	option(a, flags, to, "worker-type", "TYPE", usage, workerType)
	if byDefault == "" {
		require(flags, "worker-type", "")
	}
}

// jsonFlag adds --output, whose default is another form.
func (a *app) jsonFlag(flags *pflag.FlagSet, to *bool, byDefault, what string) {
	asJSON := func(text string) (bool, error) {
		word, err := oneOf(byDefault, "json")(text)
		return word == "json", err
	}
	option(a, flags, to, "output", byDefault+"|json", fmt.Sprintf("how to show %s (default %s)", what, byDefault), asJSON)
}

// timeoutFlag adds --timeout, for what a store is waited for.
func (a *app) timeoutFlag(flags *pflag.FlagSet, to *time.Duration, what string, most time.Duration) {
	option(a, flags, to, "timeout", "DURATION", fmt.Sprintf("%s (default %s)", what, display.Brief(*to)), duration(time.Millisecond, most))
}

const (
	waitForStore = "how long to wait for the store"
	waitTwice    = "how long to wait for the store, before the question and after it"
	reasonUsage  = "why, for people who look at the ledger later"
)

// asker asks who sits at the terminal; it is nil if nobody does.
func (a *app) asker(c *cobra.Command) func(question string) (string, error) {
	if !isTerminal(a.stdin) {
		return nil
	}
	return func(question string) (string, error) { return a.ask(c.Context(), question) }
}
