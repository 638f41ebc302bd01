package app

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/doctor"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

// helpTexts are the texts of the help: of commands, by their paths, and of topics. A text of a command says what it is
// for; then come its examples; and then what is shown below its options.
//
//go:embed help/*.txt
var helpTexts embed.FS

const (
	examplesBelow = "\n=== examples\n"
	moreBelow     = "\n=== more\n"
	more          = "more help" // the annotation with what is shown below the options
)

// topic is a text of no command.
type topic struct{ name, short string }

var topics = []topic{
	{"daemons", "Commands that aren't meant to end: --continuous and --on-exit"},
	{"environment", "What the command of run has in its environment"},
	{"exit-codes", "The exit codes"},
	{"failover", "What it takes until another worker takes over: --failover-within"},
	{"jobs", "Commands that are done once in each slot: --once-per-slot"},
	{"listen", "Probes, status and metrics: --listen; systemd"},
	{"log", "What the log of run says"},
	{"notify", "Who is told of failures, missed slots and successes: --on-failure"},
	{"once", "For cron and CronJobs, and in place of flock -n: --once"},
	{"schedules", "When slots begin: --every, --cron, --except, --spread"},
	{"stopping", "How the command of run ends"},
}

// addHelp gives a command its texts, and all below it.
func addHelp(c *cobra.Command) {
	if text := helpText(c); text != "" {
		text, below, _ := strings.Cut(text, moreBelow)
		c.Long, c.Example, _ = strings.Cut(text, examplesBelow)
		c.Annotations = withAnnotation(c.Annotations, more, strings.TrimRight(below, "\n"))
		c.Example = strings.TrimRight(c.Example, "\n")
	}
	for _, below := range c.Commands() {
		addHelp(below)
	}
}

// helpText is the text of a command or a topic, or empty.
func helpText(c *cobra.Command) string {
	name := strings.ReplaceAll(strings.TrimPrefix(c.CommandPath(), "leasectl "), " ", "-")
	text, err := fs.ReadFile(helpTexts, path.Join("help", name+".txt"))
	if err != nil {
		return ""
	}
	order, err := fs.ReadFile(helpTexts, "help/lever.txt")
	if err != nil {
		panic(err) // It is part of the program.
	}
	return strings.NewReplacer(
		"{{checks}}", checkList(), "{{codes}}", exit.Codes, "{{forms}}", furtherForms(), "{{lever}}", strings.TrimSpace(string(order)),
	).Replace(string(text))
}

// checkList are the checks of doctor.
func checkList() string {
	var b strings.Builder
	for _, c := range doctor.Checks() {
		asks := c.Asks
		if c.Of != "" {
			asks += " (" + c.Of + ")"
		}
		fmt.Fprintf(&b, "  %-20s %s\n", c.Name, asks)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// furtherForms are the lines of the stores that this leasectl opens besides those that each one does.
func furtherForms() string {
	var b strings.Builder
	for _, form := range storeuri.FurtherForms() {
		b.WriteString("  " + form + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// usesStore marks the commands that --store means something to.
const usesStore = "uses the store"

// needsStore marks a command as one.
func needsStore(c *cobra.Command) *cobra.Command {
	c.Annotations = withAnnotation(c.Annotations, usesStore, "yes")
	return c
}

func withAnnotation(all map[string]string, name, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[name] = value
	return all
}

// versionFlag asks for the version alone, whatever else is given.
const versionFlag = "version"

// refuseStore refuses --store and --store-file where they would be passed over in silence.
func (a *app) refuseStore(c *cobra.Command, _ []string) error {
	if asked, _ := c.Flags().GetBool(versionFlag); asked || c.Annotations[usesStore] != "" {
		return nil
	}
	return storeUnused(c)
}

// storeUnused is the error of a command that was given a store, and doesn't use it.
func storeUnused(c *cobra.Command) error {
	for _, name := range []string{"store", storeFile} {
		if c.Flags().Changed(name) {
			return exit.BadUsage(c.CommandPath()+" --help", fmt.Errorf("--%s: means nothing to %q", name, c.CommandPath()))
		}
	}
	return nil
}

// showHelp shows the help of a command. It has --store and --store-file only if they mean something to it, or to a command
// below.
func showHelp(c *cobra.Command, _ []string) {
	for _, name := range []string{"store", storeFile} {
		f := c.Root().PersistentFlags().Lookup(name)
		f.Hidden = !leadsToStore(c)
		defer func() { f.Hidden = false }()
	}
	_, _ = io.WriteString(c.OutOrStdout(), helpOf(c)) // what failed is told at the end
}

func leadsToStore(c *cobra.Command) bool {
	return c.Annotations[usesStore] != "" || slices.ContainsFunc(c.Commands(), leadsToStore)
}

// helpCommand is cobra's, but that a topic which doesn't exist is an error.
func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(c *cobra.Command, args []string) error {
			topic, rest, err := c.Root().Find(args)
			if topic == nil || err != nil || len(rest) > 0 {
				unknown := args[0] // the first word that led nowhere
				if len(rest) > 0 {
					unknown = rest[0]
				}
				return exit.BadUsage(c.Root().CommandPath()+" --help", fmt.Errorf("unknown help topic %q", secret.Shown(unknown)))
			}
			topic.InitDefaultHelpFlag()
			return topic.Help()
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var topics []cobra.Completion
			if topic, _, err := c.Root().Find(args); err == nil {
				for _, below := range topic.Commands() {
					if below.IsAvailableCommand() || below.IsAdditionalHelpTopicCommand() {
						topics = append(topics, cobra.CompletionWithDesc(below.Name(), below.Short))
					}
				}
			}
			return topics, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
