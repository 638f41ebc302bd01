package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

// An option that is to go works on: the help shows it, its use is one line on standard error, and standard output is as
// before.
func TestAnOptionThatIsDeprecatedWorksOnAndSaysSo(t *testing.T) {
	run := func(args ...string) output {
		t.Helper()
		var stdout, stderr bytes.Buffer
		a := &app{stdout: &stdout, stderr: &stderr}
		a.shown = &sink{Writer: a.picture(), stop: func() {}}
		root := a.command()
		next, _, err := root.Find([]string{"next"})
		must(t, err)
		next.Flags().Duration("slot-length", 0, "the length of slots. Deprecated: use --every")
		root.SetArgs(args)
		root.SetOut(a.shown)
		root.SetErr(a.told())
		return output{a.report(root.ExecuteContext(t.Context())), stdout.String(), stderr.String()}
	}
	if got := run("next", "--help"); got.code != exit.OK || !strings.Contains(got.stdout, "Deprecated: use --every") || got.stderr != "" {
		t.Errorf("the help is %+v, want the option in it, and that it is deprecated", got)
	}
	plain := run("next", "--every", "1h", "--output", "json", "--count", "1")
	const told = "leasectl: --slot-length is deprecated, and works on for now: use --every\n"
	if got := run("next", "--every", "1h", "--output", "json", "--count", "1", "--slot-length", "1m"); got.code != exit.OK || got.stderr != plain.stderr+told || len(got.stdout) != len(plain.stdout) {
		t.Errorf("%+v, want %+v, and on standard error %q", got, plain, told)
	}
}

// No option is marked as pflag does it.
func TestNoOptionIsDeprecatedInSilence(t *testing.T) {
	a := &app{}
	for todo := a.command().Commands(); len(todo) > 0; todo = todo[1:] {
		todo[0].Flags().VisitAll(func(f *pflag.Flag) {
			if f.Deprecated != "" || f.ShorthandDeprecated != "" {
				t.Errorf("%s --%s is marked by pflag: put %q into its text", todo[0].CommandPath(), f.Name, deprecated)
			}
		})
		todo = append(todo, todo[0].Commands()...)
	}
}
