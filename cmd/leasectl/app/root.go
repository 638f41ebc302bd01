package app

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
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
		Use:   "leasectl",
		Short: "Time-slotted worker leases: run commands under them, and look at their ledgers",
		Example: `  leasectl demo   # see it work, with nothing to set up
  leasectl run --store sqlite:leases.db --worker-type report --every 5m -- ./report.sh
  leasectl inspect slots --store sqlite:leases.db`,
		Long: `leasectl runs commands under time-slotted worker leases, and looks at their
ledgers. For each slot at most one worker of a worker type holds the lease.

The store is named by --store or in the file of --store-file, or by LEASECTL_STORE or in the
file of LEASECTL_STORE_FILE:

  sqlite:PATH
  mongodb://USER:PASSWORD@HOST/DATABASE?collection=NAME, or mongodb+srv://…
  cosmos://ACCOUNT/DATABASE/CONTAINER   with the account's key in COSMOS_KEY
  cosmos:///DATABASE/CONTAINER          with COSMOS_CONNECTION_STRING
  postgres://USER:PASSWORD@HOST/DATABASE?table=NAME
  mysql://USER:PASSWORD@HOST/DATABASE?table=NAME
  redis://USER:PASSWORD@HOST/0?prefix=NAME, or rediss://…
  s3://BUCKET/FOLDER?region=NAME        with AWS_ACCESS_KEY_ID, or what AWS's tools use
  azblob://ACCOUNT/CONTAINER/FOLDER     with AZURE_STORAGE_KEY, or what Azure's tools use
` + furtherForms() + `
With neither COSMOS_KEY nor COSMOS_CONNECTION_STRING, Azure's default credential is
used: a managed identity, az login, and so on. DATABASE and CONTAINER default to
WorkerProcess and WorkerLeases. Parameters of the URI are serverSkew=500ms, how far the
clocks of Azure's servers may differ (250ms), and unsafeUnverifiedAccount=true, which
accepts an account that doesn't say whether it takes writes in several regions. With
MongoDB, serverSkew=150ms is about members whose clocks can't be read (100ms), and
unsafeUnverified=true accepts a collection that may be sharded.

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
		"the store: "+storeuri.Forms()+" (default: $"+storeuri.Variable+", where a password belongs)")
	option(a, root.PersistentFlags(), &a.storeFile, storeFile, "FILE", "the same, in a file, such as a mounted secret (default: $"+storeuri.FileVariable+")", nonEmpty)
	// Not cobra's own, which would take -v.
	root.Flags().Bool("version", false, "show version, Go release and platform")
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpTemplate(helpTemplate)
	root.SetHelpCommand(a.helpCommand())
	tidyHelp(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		a.problems = append(a.problems, secret.InFlags(err))
		return a.usage(c)
	})
	root.AddCommand(
		needsStore(a.backupCommand()), needsStore(a.copyCommand()), a.demoCommand(), needsStore(a.doctorCommand()), needsStore(a.drainCommand()),
		needsStore(a.initCommand()), a.inspectCommand(), needsStore(a.nextCommand()), needsStore(a.overrideCommand()),
		needsStore(a.pauseCommand()), needsStore(a.planCommand()), needsStore(a.preferCommand()),
		needsStore(a.reanchorCommand()), needsStore(a.releaseCommand()), needsStore(a.resumeCommand()),
		needsStore(a.runCommand()), needsStore(a.statusCommand()), needsStore(a.trimCommand()),
		needsStore(a.verifyCommand()), a.versionCommand(), needsStore(a.whyCommand()),
		a.demoWorkCommand(),
		&cobra.Command{Use: "exit-codes", Short: "The exit codes", Long: "Exit codes:\n" + exit.Codes},
	)
	return root
}

// furtherForms are the lines of the stores that this leasectl opens besides those that each one does.
func furtherForms() string {
	var b strings.Builder
	for _, form := range storeuri.FurtherForms() {
		b.WriteString("  " + form + "\n")
	}
	return b.String()
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
		case f.Name == "instance-id" && c.Name() != "run":
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
