package app

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

// storeFile is the option that names a file with the store's URI.
const storeFile = "store-file"

// target reads the store that an option names, or else an environment variable, and notes its problems.
func (a *app) target(c *cobra.Command) storeuri.Target {
	n, ok := a.named(c)
	if !ok {
		return storeuri.Target{}
	}
	if n.from == "" {
		a.bad("no store: name one with --store or %s", storeuri.Variable)
		a.try = "--store sqlite:leases.db, or export " + storeuri.Variable + "=mongodb://…"
		return storeuri.Target{}
	}
	parse := storeuri.Parse
	if n.file != "" {
		parse = storeuri.ParseFile
	}
	t, err := parse(n.text, a.getenv)
	a.noStore(n.from, err)
	t.InEnv, t.File = n.inEnv, n.file
	if t.IsFile() {
		for _, name := range []string{t.Shown, t.Place(), t.Path()} {
			a.plain = append(a.plain, name)
			if word, ok := display.Word(name); ok {
				a.plain = append(a.plain, word)
			}
		}
	}
	return t
}

// noStore notes the problem of a text that names no store, if there is one, and what to try about a store that this
// leasectl lacks.
func (a *app) noStore(from string, err error) {
	if err == nil {
		return
	}
	a.bad("%s: %w", from, err)
	if absent, ok := errors.AsType[*storeuri.AbsentError](err); ok {
		a.try = absent.Try()
	}
}

// naming is how a store was named.
type naming struct {
	from  string // what names it, for messages; empty: nothing does
	inEnv bool
	file  string // which has the text; empty: none
	text  string
}

// named reads how the store is named. Options come before the environment. Two of a kind are a problem,
// which is noted.
func (a *app) named(c *cobra.Command) (n naming, ok bool) {
	given, givenFile := c.Flags().Changed("store"), c.Flags().Changed(storeFile)
	n.text, n.file = a.getenv(storeuri.Variable), a.getenv(storeuri.FileVariable)
	n.inEnv = !given && !givenFile
	switch {
	case given && givenFile:
		a.bad("--store and --%s: give only one of them", storeFile)
		return n, false
	case given:
		return naming{from: "--store", text: a.store}, true
	case givenFile && a.storeFile == "":
		return n, false // That is noted already.
	case givenFile:
		n.from, n.file = "--"+storeFile, a.storeFile
	case n.text != "" && n.file != "":
		a.bad("%s and %s are set: set only one", storeuri.Variable, storeuri.FileVariable)
		return n, false
	case n.text != "":
		n.from = storeuri.Variable
		return n, true
	case n.file != "":
		n.from = storeuri.FileVariable
	default:
		return n, true
	}
	n.from = fmt.Sprintf("%s %q", n.from, n.file)
	var err error
	if n.text, err = storeuri.ReadFile(c.Context(), n.file); err != nil {
		a.bad("%s: %w", n.from, err)
		return n, false
	}
	secret.AddURI(&a.secrets, n.text)
	return n, true
}
