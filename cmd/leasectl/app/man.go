package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/workerlease"
)

// manCommand writes the help as man pages, for packages.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages into a directory that exists",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(c *cobra.Command, args []string) error { return writeMan(c.Root(), args[0]) },
	}
}

// writeMan writes the pages of a command and of all below it that the help shows.
func writeMan(c *cobra.Command, dir string) error {
	name := manName(c)
	if err := os.WriteFile(filepath.Join(dir, name+"."+manSection(c)), []byte(manPage(c)), 0o644); err != nil { //nolint:gosec // documentation
		return err
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() || below.IsAdditionalHelpTopicCommand() {
			if err := writeMan(below, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manSection is that of commands, or that of topics.
func manSection(c *cobra.Command) string {
	if c.IsAdditionalHelpTopicCommand() {
		return "7"
	}
	return "1"
}

// manPage is a page in the language of man. It has no date, so that it is the same whenever it is made, and its texts keep
// their lines, which are made for terminals.
func manPage(c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s %s \"\" %q\n.SH NAME\n%s \\- %s\n", strings.ToUpper(manName(c)), manSection(c), "slotlease "+workerlease.Version(), manName(c), roff(c.Short))
	show := func(title, text string) {
		fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", strings.ToUpper(title), roff(text))
	}
	if !c.IsAdditionalHelpTopicCommand() {
		show("synopsis", synopsis(c))
	}
	show("description", purpose(c))
	if !c.IsAdditionalHelpTopicCommand() {
		for _, p := range parts(c) {
			show(cmp.Or(p.title, "notes"), p.text)
		}
	}
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", manName(c.Parent()))
	}
	return b.String()
}

// roff is a text that man shows as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", "\\`").Replace(text)
	return strings.ReplaceAll(`\&`+strings.ReplaceAll(text, "\n", "\n\\&"), "\\&\n", "\n")
}
