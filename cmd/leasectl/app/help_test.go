package app

import (
	"io"
	"os"
	"slices"
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
		{[]string{"run", "--help"}, "environment  LEASE_TOKEN"},
		{[]string{"run", "--help"}, "--failover-within"},
		{[]string{"help", "jobs"}, "at least once in a slot"},
		{[]string{"help", "listen"}, "doneUntil"},
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
	without := []string{"demo", "import", "import crontab", "import cronjob", "import systemd-timer", "completion", "completion bash", "help"}
	for _, topic := range topics {
		without = append(without, topic.name)
	}
	commands := []string{"", "inspect run", "inspect slots", "inspect workers", "import crontab", "import cronjob", "import systemd-timer", "completion bash"}
	for _, c := range (&app{}).command().Commands() {
		if !c.Hidden {
			commands = append(commands, c.Name())
		}
	}
	for _, args := range commands {
		usesStore := !slices.Contains(without, args)
		done := leasectl(t, nil, append(strings.Fields(args), "--help")...)
		got := done.stdout
		if done.code != exit.OK || strings.Contains(got, "--store string") != usesStore {
			t.Errorf("leasectl %s --help = %d, with --store: %v, want %v", args, done.code, !usesStore, usesStore)
		}
		if ofTopic := slices.ContainsFunc(topics, func(topic topic) bool { return topic.name == args }); !ofTopic && !strings.HasPrefix(got, "Usage:\n  "+strings.TrimSpace("leasectl "+args)) {
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

func TestTheHelpOfRunIsShortAndLeadsToTheRest(t *testing.T) {
	got := leasectl(t, nil, "run", "--help").stdout
	if n := strings.Count(got, "\n"); n > 100 {
		t.Errorf("leasectl run --help has %d lines, want at most 100", n)
	}
	for _, part := range []string{"\nRun a command ", "\nExamples:\n", "\nFlags:\n      --worker-type ", "\nMore by leasectl help TOPIC:\n"} {
		_, rest, found := strings.Cut(got, part)
		if !found {
			t.Errorf("leasectl run --help lacks %q, or has it elsewhere:\n%s", part, got)
		}
		got = rest
	}
	for _, topic := range topics {
		if text := leasectl(t, nil, "help", topic.name).stdout; len(text) < 200 || strings.Contains(text, "{{") || strings.Contains(text, "Usage:") {
			t.Errorf("leasectl help %s is %q", topic.name, text)
		}
		if of := topic.name != "exit-codes"; strings.Contains(got, "\n  "+topic.name+" ") != of {
			t.Errorf("leasectl run --help leads to %s: %v, want %v", topic.name, !of, of)
		}
	}
}

// Not parallel: it takes the process's own stderr, where cobra writes what it
// can't complete.
func TestWhatCannotBeCompletedShowsNoPassword(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	stderr := os.Stderr
	os.Stderr = w
	got := leasectl(t, nil, "__complete", "run", "--store", "mongodb://user:hunter2@h/d", "--tie-breatk", "")
	os.Stderr = stderr
	must(t, w.Close())
	said, err := io.ReadAll(r)
	must(t, err)
	if !strings.Contains(string(said), "--tie-breatk") {
		t.Errorf("cobra wrote %q, want what it couldn't complete", said)
	}
	if all := string(said) + got.stdout + got.stderr; strings.Contains(all, "hunter2") {
		t.Errorf("leasectl __complete wrote %q, want no password", all)
	}
}
