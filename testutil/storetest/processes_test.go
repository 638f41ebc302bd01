package storetest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// openAlone opens a ledger that no other process sees.
func openAlone(context.Context, string) (store.Ledger, error) {
	return memory.New(memory.Options{}), nil
}

func TestARaceOfProcessesNoticesKeysThatAreWonTwice(t *testing.T) {
	t.Parallel()
	race := storetest.ProcessRace{Processes: 1, Goroutines: 2, Rounds: 3}
	if os.Getenv(breakEnv) != "" {
		race.Processes = 2
		race.Run(t)
		return
	}
	race.Run(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // It is this very binary.
	cmd.Env = append(os.Environ(), breakEnv+"=race")
	out, err := cmd.CombinedOutput()
	if want := "Seq 3 was won 2 times, want exactly once"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("a race on two ledgers: %v, want %q in\n%s", err, want, out)
	}
}
