package app

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// part is a titled part of a help; the last has no title.
type part struct{ title, text string }

// helpOf is the help of a command or a topic: what it is for, before its options. It fits a terminal of 100 columns.
//
// It is no template of cobra's: with text/template, the linker must keep every exported method of every type, which is a
// quarter of the program.
func helpOf(c *cobra.Command) string {
	if c.IsAdditionalHelpTopicCommand() {
		return purpose(c) + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage:\n  %s\n\n%s\n", synopsis(c), purpose(c))
	for _, p := range parts(c) {
		b.WriteString("\n")
		if p.title != "" {
			b.WriteString(p.title + ":\n")
		}
		b.WriteString(p.text + "\n")
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s COMMAND --help\" for more about a command.\n", c.CommandPath())
	}
	return b.String()
}

// synopsis is how a command is called.
func synopsis(c *cobra.Command) string {
	if c.HasAvailableSubCommands() {
		return c.CommandPath() + " COMMAND"
	}
	return c.UseLine()
}

// purpose says what a command is for.
func purpose(c *cobra.Command) string {
	if c.Long == "" {
		return c.Short
	}
	return strings.TrimSpace(c.Long)
}

// parts are what a help has below that.
func parts(c *cobra.Command) (all []part) {
	for _, p := range []part{
		{"Examples", c.Example},
		{"Commands", namesBelow(c, c.NamePadding(), func(c *cobra.Command) bool { return c.IsAvailableCommand() || c.Name() == "help" })},
		{"Topics of leasectl help", namesBelow(c, 12, (*cobra.Command).IsAdditionalHelpTopicCommand)},
		{"Flags", strings.TrimRight(c.LocalFlags().FlagUsagesWrapped(100), " \n")},
		{"Global Flags", strings.TrimRight(c.InheritedFlags().FlagUsagesWrapped(100), " \n")},
		{"", c.Annotations[more]},
	} {
		if p.text != "" {
			all = append(all, p)
		}
	}
	return all
}

// namesBelow are the commands below one that are meant, a line each.
func namesBelow(c *cobra.Command, width int, meant func(*cobra.Command) bool) string {
	var lines []string
	for _, below := range c.Commands() {
		if meant(below) {
			lines = append(lines, fmt.Sprintf("  %-*s %s", width, below.Name(), below.Short))
		}
	}
	return strings.Join(lines, "\n")
}
