package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// foreign are flags of other programs.
var foreign = []string{"auto-compaction-mode"}

// Each command that the documentation shows is there, with its flags, and so is each flag that its text names.
func TestTheDocumentationNamesWhatIsThere(t *testing.T) {
	root := (&app{}).command()
	known := map[string]bool{"help": true}
	for todo := []*cobra.Command{root}; len(todo) > 0; todo = todo[1:] {
		for _, set := range []*pflag.FlagSet{todo[0].Flags(), todo[0].PersistentFlags()} {
			set.VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
		todo = append(todo, todo[0].Commands()...)
	}
	named := regexp.MustCompile("`--([a-z][a-z-]+)")
	shown := regexp.MustCompile(`(?m)^(?:\$ )?leasectl ((?:[^\n|>&;#]|\\\n)+)`)
	block := regexp.MustCompile("(?s)```(?:sh|console)[^\n]*\n(.*?)\n```")
	flag := regexp.MustCompile(`^--([a-z][a-z-]+)`)
	commands := 0
	page := func(path string) {
		b, err := os.ReadFile(path)
		must(t, err)
		for _, m := range named.FindAllSubmatch(b, -1) {
			if name := string(m[1]); !known[name] && !slices.Contains(foreign, name) {
				t.Errorf("%s: there is no flag --%s", path, name)
			}
		}
		var blocks []byte
		for _, m := range block.FindAllSubmatch(b, -1) {
			blocks = append(append(blocks, m[1]...), '\n')
		}
		for _, m := range shown.FindAllSubmatch(blocks, -1) {
			line := strings.ReplaceAll(string(m[1]), "\\\n", " ")
			line, _, _ = strings.Cut(line, " -- ")
			c, rest, err := root.Find(strings.Fields(line))
			commands++
			if err != nil || c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
				t.Errorf("%s: leasectl %s: there is no such command", path, line)
				continue
			}
			for _, word := range rest {
				if f := flag.FindStringSubmatch(word); f != nil && f[1] != "help" && c.Flags().Lookup(f[1]) == nil && c.InheritedFlags().Lookup(f[1]) == nil {
					t.Errorf("%s: %s has no flag --%s", path, c.CommandPath(), f[1])
				}
			}
		}
	}
	page("../../../README.md")
	err := filepath.WalkDir("../../../docs", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			page(path)
		}
		return err
	})
	if err != nil || commands < 30 {
		t.Errorf("%d commands are shown, want 30 at least: %v", commands, err)
	}
}
