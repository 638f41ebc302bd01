package app

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
)

// helpTemplate begins with what most people look for, and fits a terminal of 100 columns.
const helpTemplate = `{{if .IsAdditionalHelpTopicCommand}}{{.Long}}
{{else}}Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND{{else}}{{.UseLine}}{{end}}
{{if .HasExample}}
Examples:
{{.Example}}
{{end}}{{if .HasAvailableSubCommands}}
Commands:{{range .Commands}}{{if or .IsAvailableCommand .IsAdditionalHelpTopicCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}{{if .HasAvailableLocalFlags}}
Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}
{{end}}{{if .HasAvailableInheritedFlags}}
Global Flags:
{{.InheritedFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}
{{end}}
{{with or .Long .Short}}{{. | trimTrailingWhitespaces}}{{end}}
{{if .HasAvailableSubCommands}}
Use "{{.CommandPath}} COMMAND --help" for more about a command.
{{end}}{{end}}`

// usesStore marks the commands that --store means something to.
const usesStore = "uses the store"

// needsStore marks a command as one.
func needsStore(c *cobra.Command) *cobra.Command {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[usesStore] = "yes"
	return c
}

// refuseStore refuses --store and --store-file where they would be passed over in silence.
func (a *app) refuseStore(c *cobra.Command, _ []string) error {
	for _, name := range []string{"store", storeFile} {
		if c.Flags().Changed(name) && c.Annotations[usesStore] == "" {
			return exit.BadUsage(c.CommandPath()+" --help", fmt.Errorf("--%s: means nothing to %q", name, c.CommandPath()))
		}
	}
	return nil
}

// tidyHelp makes the help of a command show --store and --store-file only if they mean something
// to it, or to a command below.
func tidyHelp(root *cobra.Command) {
	show := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		for _, name := range []string{"store", storeFile} {
			f := root.PersistentFlags().Lookup(name)
			f.Hidden = !leadsToStore(c)
			defer func() { f.Hidden = false }()
		}
		show(c, args)
	})
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
				return exit.BadUsage(c.Root().CommandPath()+" --help", fmt.Errorf("unknown help topic %q", secret.Shown(unknownTopic(args, rest))))
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

// unknownTopic is the first word that led nowhere.
func unknownTopic(args, rest []string) string {
	if len(rest) > 0 {
		return rest[0]
	}
	return args[0]
}
