package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

// app is one invocation of leasectl: where it reads and writes, and what it was
// told.
type app struct {
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
	signals        interrupt.Signals

	store    string // --store
	secrets  secret.List
	problems []error // bad option values, reported all together
	try      string  // what to try about them, if not --help
}

// run is leasectl: it does what args say and returns the exit code. ctx ending
// is as a first interrupt.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{env: env, stdin: stdin, stdout: shared(stdout), stderr: shared(stderr)}
	a.secrets = a.secretsIn(args)
	ctx, a.signals = interrupt.Catch(ctx)
	defer a.signals.Stop()
	root := a.command()
	a.completeOptions(root)
	root.SetArgs(a.readable(args))
	root.SetIn(stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return a.report(root.ExecuteContext(ctx))
}

// readable is args for cobra. What cannot be completed it writes to the process's
// own stderr as it is, so it gets no secrets to complete.
func (a *app) readable(args []string) []string {
	args = append([]string{}, args...) // for nil, cobra would take the process's own
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		for i := range args {
			args[i] = a.scrub(args[i])
		}
	}
	return args
}

// command is the tree of commands.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "leasectl",
		Short: "Time-slotted worker leases: run commands under them, and look at their ledgers",
		Long: `leasectl runs commands under time-slotted worker leases, and looks at their
ledgers. For each slot exactly one worker of a worker type holds the lease.

See it work, with nothing to set up:

  leasectl demo

The store is named by --store, or by LEASECTL_STORE:

  sqlite:PATH
  mongodb://USER:PASSWORD@HOST/DATABASE?collection=NAME, or mongodb+srv://…
  cosmos://ACCOUNT/DATABASE/CONTAINER   with the account's key in COSMOS_KEY
  cosmos:///DATABASE/CONTAINER          with COSMOS_CONNECTION_STRING

With neither variable, Azure's default credential is used: a managed identity, az
login, and so on. DATABASE and CONTAINER default to WorkerProcess and WorkerLeases.

Exit codes:
` + exit.Codes,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Version:           versionText(),
		PersistentPreRunE: a.refuseStore,
		Args:              cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return a.unknown(c, args[0])
			}
			return c.Help()
		},
	}
	root.PersistentFlags().StringVar(&a.store, "store", "",
		"the store: "+storeuri.Forms+" (default: $"+storeuri.Variable+", where a password belongs)")
	// Not cobra's own, which would take -v.
	root.Flags().Bool("version", false, "show version, Go release and platform")
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(a.helpCommand())
	tidyHelp(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		a.problems = append(a.problems, err)
		return a.usage(c)
	})
	root.AddCommand(
		a.demoCommand(), needsStore(a.initCommand()), a.inspectCommand(), needsStore(a.planCommand()), needsStore(a.runCommand()),
		a.versionCommand(),
		a.demoWorkCommand(),
		&cobra.Command{Use: "exit-codes", Short: "The exit codes", Long: "Exit codes:\n" + exit.Codes},
	)
	return root
}

// unknown is the error for a command that doesn't exist.
func (a *app) unknown(c *cobra.Command, name string) error {
	try := c.CommandPath() + " --help"
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(name); len(near) > 0 {
		try = c.CommandPath() + " " + strings.Join(near, ", or "+c.CommandPath()+" ")
	}
	return exit.BadUsage(try, fmt.Errorf("unknown command %q for %q", name, c.CommandPath()))
}

// noArgs refuses arguments in one clear line.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return exit.BadUsage(c.CommandPath()+" --help", fmt.Errorf("unexpected argument %q for %q", args[0], c.CommandPath()))
	}
	return nil
}

// report prints an error, one line for each problem and one for the hint, and
// returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exit.OK
	}
	e, ok := errors.AsType[*exit.Error](err)
	if !ok {
		e = exit.With(exit.Failure, err)
	}
	for _, p := range e.Problems {
		a.errorf("leasectl: %s\n", strings.Join(strings.Fields(display.Printable(a.scrub(p.Error()))), " "))
	}
	if e.Try != "" {
		a.errorf("try: %s\n", a.scrub(e.Try))
	}
	return e.Code
}

// bad notes what is wrong with an option.
func (a *app) bad(format string, args ...any) {
	a.problems = append(a.problems, fmt.Errorf(format, args...))
}

// usage is the error of all options that were noted, or nil.
func (a *app) usage(c *cobra.Command) error {
	if len(a.problems) == 0 {
		return nil
	}
	return exit.BadUsage(cmp.Or(a.try, c.CommandPath()+" --help"), a.problems...)
}

// getenv is the value of an environment variable, or "".
func (a *app) getenv(name string) string {
	value := ""
	for _, pair := range a.env {
		if n, v, ok := strings.Cut(pair, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// secretsIn finds what may be secret in the arguments and the environment.
func (a *app) secretsIn(args []string) secret.List {
	found := storeuri.Secrets(a.getenv)
	for _, arg := range args {
		found = append(found, secret.InURI(strings.TrimPrefix(arg, "--store="))...)
	}
	return found
}

func (a *app) scrub(text string) string { return a.secrets.Scrub(text) }

// printf and errorf write to the standard output and error. That these can't be
// written to is nothing that could be told anywhere.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.stdout, format, args...) }
func (a *app) errorf(format string, args ...any) { _, _ = fmt.Fprintf(a.stderr, format, args...) }

// shared makes a writer safe for several goroutines; files are.
func shared(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return &sharedWriter{w: w}
}

type sharedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *sharedWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colour reports whether the standard output should have colours.
func (a *app) colour() bool {
	return isTerminal(a.stdout) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// option adds an option whose value is read by parse. A bad value is noted and
// reported together with all others.
func option[T any](a *app, flags *pflag.FlagSet, to *T, name, kind, usage string, parse func(string) (T, error)) {
	flags.Var(&value[T]{app: a, to: to, name: name, kind: kind, parse: parse}, name, usage)
}

// given is the value of an option as it was written, if it was and is a good one.
func given(flags *pflag.FlagSet, name string) (text string, ok bool) {
	f := flags.Lookup(name)
	return f.Value.String(), f.Changed && f.Value.String() != ""
}

// value is a pflag.Value that notes bad texts instead of failing.
type value[T any] struct {
	app        *app
	to         *T
	text       string
	name, kind string
	parse      func(string) (T, error)
}

func (v *value[T]) String() string { return v.text }
func (v *value[T]) Type() string   { return v.kind }

// words are the values that there are, if these are few.
func (v *value[T]) words() []string { return strings.Split(v.kind, "|") }

func (v *value[T]) Set(text string) error {
	parsed, err := v.parse(text)
	if err != nil {
		v.app.bad("--%s %q: %w", v.name, text, err)
		return nil
	}
	v.text, *v.to = text, parsed
	return nil
}
