package app

import (
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/demo"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

func TestHelpVersionAndCompletionWork(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "leasectl demo"},
		{[]string{"--help"}, "Exit codes:\n" + exit.Codes},
		{[]string{"help", "exit-codes"}, "Exit codes:\n" + exit.Codes},
		{[]string{"inspect"}, "slots"},
		{[]string{"inspect", "slots", "--help"}, "claimedMs"},
		{[]string{"run", "--help"}, "LEASE_TOKEN"},
		{[]string{"run", "--help"}, "--failover-within"},
		{[]string{"run", "--help"}, "at least once in a slot"},
		{[]string{"override", "--help"}, "two may\nwork"},
		{[]string{"plan", "--help"}, "peakRequestUnitsPerSecond"},
		{[]string{"doctor", "--help"}, "storeTime"},
		{[]string{"version"}, versionText() + "\n"},
		{[]string{"--version"}, versionText() + "\n"},
		{[]string{"version", "--output", "json"}, `"platform":"`},
		{[]string{"help", "inspect", "slots"}, "claimedMs"},
		{[]string{"completion", "bash"}, "bash completion"},
		{[]string{"completion", "zsh"}, "#compdef leasectl"},
		{[]string{"completion", "fish"}, "fish completion"},
		{[]string{"completion", "powershell"}, "powershell completion"},
	} {
		// A store that is bad is none of their business.
		if got := leasectl(t, []string{storeuri.Variable + "=bad"}, test.args...); got.code != exit.OK || !strings.Contains(got.stdout, test.want) || got.stderr != "" {
			t.Errorf("leasectl %v = %+v, want %q in it", test.args, got, test.want)
		}
	}
	if got := leasectl(t, nil, "--help"); strings.Contains(got.stdout, demo.WorkCommand) || strings.Contains(got.stdout, "tether") {
		t.Errorf("leasectl --help shows what is hidden:\n%s", got.stdout)
	}
}

// The help of a command begins with what most people look for, shows --store where it
// means something, and fits a terminal.
func TestHelpBeginsWithUsageAndFitsATerminal(t *testing.T) {
	for args, usesStore := range map[string]bool{
		"": true, "init": true, "run": true, "plan": true, "inspect": true, "inspect slots": true, "override": true, "doctor": true,
		"demo": false, "version": false, "completion": false, "completion bash": false, "exit-codes": false,
	} {
		done := leasectl(t, nil, append(strings.Fields(args), "--help")...)
		got := done.stdout
		if done.code != exit.OK || strings.Contains(got, "--store string") != usesStore {
			t.Errorf("leasectl %s --help = %d, with --store: %v, want %v", args, done.code, !usesStore, usesStore)
		}
		if args != "exit-codes" && !strings.HasPrefix(got, "Usage:\n  "+strings.TrimSpace("leasectl "+args)) {
			t.Errorf("leasectl %s --help begins %.60q, want the usage", args, got)
		}
		if strings.Contains(got, "\n\n\n") || strings.Contains(got, " \n") {
			t.Errorf("leasectl %s --help has empty lines or spaces too many:\n%s", args, got)
		}
		for line := range strings.Lines(got) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
				t.Errorf("leasectl %s --help has a line of %d characters: %q", args, n, line)
			}
		}
	}
}

func TestTheHelpOfRunBeginsWithUsageExamplesAndFlags(t *testing.T) {
	got := leasectl(t, nil, "run", "--help").stdout
	usage, rest, _ := strings.Cut(got, "\nExamples:\n")
	examples, rest, _ := strings.Cut(rest, "\nFlags:\n")
	flags, _, _ := strings.Cut(rest, "\n\n")
	if !strings.HasPrefix(usage, "Usage:\n  leasectl run ") || strings.Count(usage, "\n") != 2 {
		t.Errorf("leasectl run --help begins %q, want the usage in one line", usage)
	}
	if n := strings.Count(examples, "  leasectl run "); n != 4 || strings.Count(examples, "\n") != 4 {
		t.Errorf("leasectl run --help has the examples %q, want four", examples)
	}
	if !strings.HasPrefix(strings.TrimSpace(flags), "--worker-type") || !strings.Contains(flags, "--log-format") {
		t.Errorf("leasectl run --help has the flags %q", flags)
	}
}

func TestShellsCompleteValuesAndNoNamesOfFiles(t *testing.T) {
	for args, want := range map[string]string{
		"run --tie-break":        "sticky\nrotate\nrandom\nspread\n:4\n",
		"run --log-level":        "debug\ninfo\nwarn\nerror\n:4\n",
		"run --log-format":       "text\njson\n:4\n",
		"inspect slots --output": "table\njson\n:4\n",
		"plan --consistency":     "strong\nbounded-staleness\nsession\nconsistent-prefix\neventual\n:4\n",
		"version --output":       "text\njson\n:4\n",
		"override --seq":         ":4\n",
		"override --done-until":  ":4\n",
		"run --every":            ":4\n",
		"run --failover-within":  ":4\n",
		"plan --failover-within": ":4\n",
		"run --cron":             ":4\n",
		"run --max-attempts":     ":4\n",
		"run --min-retry":        ":4\n",
		"init --store":           ":4\n",
		"init":                   ":4\n",
		"help inspect":           "slots\tShow who held, holds and will hold the newest slots\nworkers\tShow the workers that are there, who holds, and why the others don't\n:4\n",
		"run --":                 ":0\n", // the command
	} {
		got := leasectl(t, nil, append(append([]string{"__complete"}, strings.Fields(args)...), "")...)
		if got.code != exit.OK || got.stdout != want {
			t.Errorf("leasectl __complete %s = %+v, want %q", args, got, want)
		}
	}
}

// Not parallel: it takes the process's own stderr, where cobra writes what it
// can't complete.
func TestWhatCannotBeCompletedShowsNoPassword(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = w
	got := leasectl(t, nil, "__complete", "run", "--store", "mongodb://user:hunter2@h/d", "--tie-breatk", "")
	os.Stderr = stderr
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(said), "--tie-breatk") {
		t.Errorf("cobra wrote %q, want what it couldn't complete", said)
	}
	if all := string(said) + got.stdout + got.stderr; strings.Contains(all, "hunter2") {
		t.Errorf("leasectl __complete wrote %q, want no password", all)
	}
}
