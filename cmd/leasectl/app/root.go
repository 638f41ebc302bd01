package app

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

// execute does what args say, and returns the exit code. The end of ctx counts as a first
// interrupt.
func execute(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{env: env, stdin: stdin, stdout: shared(stdout), stderr: shared(stderr)}
	a.secrets = a.secretsIn(args)
	ctx, a.signals = interrupt.Catch(ctx)
	defer a.signals.Stop()
	defer interrupt.Heard()()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.shown = &sink{Writer: a.picture(), stop: stop}
	root := a.command()
	a.completeOptions(root)
	root.SetArgs(a.readable(args))
	root.SetIn(stdin)
	root.SetOut(a.shown)
	root.SetErr(a.told())
	err := root.ExecuteContext(ctx)
	if failed := a.shown.failed(); failed != nil && !a.shown.toldBy(err) {
		err = failed
	}
	return a.report(err)
}

// readable is args for cobra, without secrets where they are to be completed: cobra
// writes arguments that it can't complete to the process's own stderr.
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
		Use:           "leasectl",
		Short:         "Time-slotted worker leases: run commands under them, and look at their ledgers",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(c *cobra.Command, args []string) error {
			a.warnOfDeprecated(c)
			return a.refuseStore(c, args)
		},
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if asked, _ := c.Flags().GetBool(versionFlag); asked {
				a.printf("%s\n", versionText())
				return nil
			}
			if len(args) > 0 {
				return a.unknown(c, args[0])
			}
			return c.Help()
		},
	}
	root.PersistentFlags().StringVar(&a.store, "store", "",
		"the store: "+storeuri.Forms()+" (default: $"+storeuri.Variable+", where a password belongs)")
	option(a, root.PersistentFlags(), &a.storeFile, storeFile, "FILE", "the same, in a file, such as a mounted secret (default: $"+storeuri.FileVariable+")", nonEmpty)
	// Not cobra's own, which would take -v.
	root.Flags().Bool(versionFlag, false, "show version, Go release and platform")
	root.SetHelpCommand(a.helpCommand())
	root.SetHelpFunc(showHelp)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		a.problems = append(a.problems, secret.InFlags(err))
		a.try = flagLike(c, err)
		return a.usage(c)
	})
	root.AddCommand(
		a.backupCommand(), a.copyCommand(), a.cronCommand(), a.demoCommand(), a.demoWorkCommand(), a.doctorCommand(), a.drainCommand(), a.importCommand(), a.initCommand(),
		a.inspectCommand(), a.manCommand(), a.nextCommand(), a.overrideCommand(), a.pauseCommand(), a.planCommand(), a.preferCommand(), a.reanchorCommand(),
		a.releaseCommand(), a.reportCommand(), a.resumeCommand(), a.runCommand(), a.serveCommand(), a.statusCommand(), a.triggerCommand(), a.trimCommand(), a.verifyCommand(), a.versionCommand(), a.whyCommand(),
	)
	for _, t := range topics {
		root.AddCommand(&cobra.Command{Use: t.name, Short: t.short})
	}
	addHelp(root)
	return root
}

// deprecated marks, in the text of an option, that it is to go, and stands before what to use in its place. pflag's own mark
// would hide it from the help, and is told on standard output, in the midst of JSON.
const deprecated = "Deprecated: "

// warnOfDeprecated says in one line which of the options that were given are to go.
func (a *app) warnOfDeprecated(c *cobra.Command) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if _, instead, is := strings.Cut(f.Usage, deprecated); is {
			a.errorf("leasectl: --%s is deprecated, and works on for now: %s\n", f.Name, instead)
		}
	})
}

// completeOptions makes the shells complete the values of options, of a command and all
// below it: a fixed list of words by these, a worker type by those in the store, and a FILE
// by the names of files, by which no other is. Arguments are names of files only where the
// command says so.
func (a *app) completeOptions(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		complete := cobra.NoFileCompletions
		if w, ok := f.Value.(interface{ words() []string }); ok && len(w.words()) > 1 {
			complete = cobra.FixedCompletions(w.words(), cobra.ShellCompDirectiveNoFileComp)
		}
		switch {
		case f.Name == "worker-type":
			complete = a.completeWorkerType
		case f.Name == "instance-id" && c.Name() != "run" && c.Name() != "cron":
			complete = a.completeInstance
		case f.Name == "host":
			complete = a.completeHost
		case f.Value.Type() == "FILE":
			complete = completeFiles
		}
		_ = c.RegisterFlagCompletionFunc(f.Name, complete) // the flag is there, and has none
	})
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, below := range c.Commands() {
		a.completeOptions(below)
	}
}

// completeFiles leaves it to the shell to complete the names of files.
func completeFiles(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// flagLike is the option that a mistyped one resembles, to be tried in its place, or empty.
func flagLike(c *cobra.Command, err error) string {
	e, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || e.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if names, near := inspect.BySimilarity(names, e.GetSpecifiedName()); near > 0 {
		return "--" + names[0]
	}
	return ""
}
