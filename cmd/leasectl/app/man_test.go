package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePagesOfManHaveWhatTheHelpHas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := (&app{}).command()
	must(t, writeMan(root, dir))
	for _, c := range root.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		page, err := os.ReadFile(filepath.Join(dir, manName(c)+"."+manSection(c)))
		if err != nil {
			t.Error(err)
			continue
		}
		// As man shows it.
		shown := strings.NewReplacer(`\e`, `\`, `\-`, "-", `\(aq`, "'", "\\`", "`", `\&`, "").Replace(string(page))
		for _, p := range append(parts(c), part{"", purpose(c)}) {
			if !c.IsAdditionalHelpTopicCommand() && !strings.Contains(shown, p.text) {
				t.Errorf("the page of %s lacks %q", c.Name(), p.text)
			}
		}
		// A line that begins with a point or an apostrophe is a command of roff.
		for _, line := range strings.Split(string(page), "\n") {
			if rest, request := strings.CutPrefix(line, "."); strings.HasPrefix(line, "'") || request && strings.Trim(rest[:2], "THSBRnfi") != "" {
				t.Errorf("the page of %s has the line %q, which man takes for a request", c.Name(), line)
			}
		}
	}
}

func TestALineOfTextIsNoRequestOfRoff(t *testing.T) {
	t.Parallel()
	if got, want := roff(".SH x\n\n'a' \\ -b"), "\\&.SH x\n\n\\&\\(aqa\\(aq \\e \\-b"; got != want {
		t.Errorf("roff() = %q, want %q", got, want)
	}
}
