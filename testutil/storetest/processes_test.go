package storetest_test

import (
	"context"
	"fmt"
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

// The test of a store is a harness and a call of Run.
func ExampleRun() {
	// func TestLedgerKeepsTheContract(t *testing.T)
	_ = func(t *testing.T) {
		storetest.Run(t, func(*testing.T) storetest.Harness {
			data := memory.New(memory.Options{})
			return storetest.Harness{
				FreeStamp: true,
				Skips: map[string]string{
					"readers": "all handles may write", "attendance/a reader*": "all handles may write",
					"attendance/a planted presence*": "presences are Go values, so all can be read",
					"two paths":                      "there is one",
					"foreign constraints":            "nobody else gives it any",
				},
				Open: func(testing.TB) store.Ledger { return data.Handle() },
				Plant: func(_ testing.TB, workerType string, seq int64, fields map[string]any) {
					data.Put(storetest.Decode(workerType, seq, fields))
				},
			}
		})
	}
}

// Contenders usually are processes of their own.
func ExampleContend() {
	data := memory.New(memory.Options{})
	won, err := storetest.Contend(context.Background(), data, "invoice-export", 5, 8, "process-1")
	fmt.Println(won, err)
	// Output: [1 2 3 4 5] <nil>
}
