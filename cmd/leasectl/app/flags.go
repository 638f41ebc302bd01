package app

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
)

// option adds an option whose value is read by parse. A bad value is noted and
// reported together with all others.
func option[T any](a *app, flags *pflag.FlagSet, to *T, name, kind, usage string, parse func(string) (T, error)) {
	flags.Var(&flagValue[T]{app: a, to: to, name: name, kind: kind, parse: parse}, name, usage)
}

// given is the value of an option as it was written, if it was and is a good one.
func given(flags *pflag.FlagSet, name string) (text string, ok bool) {
	f := flags.Lookup(name)
	return f.Value.String(), f.Changed && f.Value.String() != ""
}

// flagValue is a pflag.Value that notes bad texts instead of failing.
type flagValue[T any] struct {
	app        *app
	to         *T
	text       string
	name, kind string
	choices    []string // the values that there are, unless kind has them
	parse      func(string) (T, error)
}

func (v *flagValue[T]) String() string { return v.text }
func (v *flagValue[T]) Type() string   { return v.kind }

// choose says which values an option has, where its kind doesn't.
func choose[T any](flags *pflag.FlagSet, name string, words ...string) {
	flags.Lookup(name).Value.(*flagValue[T]).choices = words
}

// words are the values that there are, if these are few.
func (v *flagValue[T]) words() []string {
	if v.choices != nil {
		return v.choices
	}
	return strings.Split(v.kind, "|")
}

func (v *flagValue[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err != nil {
		v.app.bad("--%s %q: %w", v.name, text, err)
		return nil
	}
	v.text, *v.to = text, parsed
	return nil
}

// noArgs refuses arguments in one clear line.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.BadUsage(c.CommandPath()+" --help", fmt.Errorf("unexpected argument %q for %q", secret.Shown(args[0]), c.CommandPath()))
	}
	return nil
}
