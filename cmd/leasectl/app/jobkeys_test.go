package app

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/jobfile"
)

func TestTheKeysOfJobsAreFlagsOfRun(t *testing.T) {
	var run *cobra.Command
	for _, c := range (&app{}).command().Commands() {
		if c.Name() == "run" {
			run = c
		}
	}
	for flag, words := range jobfile.Flags() {
		f := run.Flags().Lookup(flag)
		if f == nil {
			t.Errorf("run has no --%s, which is a key in jobs.yaml", flag)
			continue
		}
		choices, ok := f.Value.(interface{ words() []string })
		open := ok && strings.Contains(strings.Join(choices.words(), "|"), ":") // as in file:PATH
		if words == "" && ok && len(choices.words()) > 1 && !open || words != "" && (!ok || strings.Join(choices.words(), "|") != words) {
			t.Errorf("--%s has %v, and its key in jobs.yaml %q", flag, choices, words)
		}
	}
}
