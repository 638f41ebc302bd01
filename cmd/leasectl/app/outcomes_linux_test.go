package app

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/history"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// Did it succeed? One command answers for any node: with a lease that is kept, with a job that is given up,
// and with one that is done.
func TestWhatCameOfACommandIsShownOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, uri string, env []string) {
		once := []string{"--once-per-slot", "--start-within", oneSlot, "--failover-within", "10s", "--max-attempts", "1"}
		for workerType, test := range map[string]struct {
			flags   []string
			command string
			state   history.State
			note    string // a pattern
			code    int
		}{
			"kept":  {[]string{"--on-exit", "keep"}, "sleep 0.3; exit 3", history.Failed, `exit code 3 after \d+(\.\d)?m?s$`, 3},
			"tried": {once, "sleep 0.3; exit 4", history.Failed, `exit code 4 after \d+(\.\d)?m?s, given up$`, 4},
			"done":  {once, "sleep 0.3", history.Done, `done in \d+(\.\d)?m?s, at \+`, 0},
		} {
			t.Run(workerType, func(t *testing.T) {
				t.Parallel()
				flags := append([]string{"--worker-type", workerType, "--every", oneSlot, "--failover-within", "1h"}, test.flags...)
				p := startRun(t, uri, "a", flags, "sh", "-c", test.command)
				var row inspect.Slot
				look := func() inspect.Slot {
					rows := inspected(t, env, "--worker-type", workerType).Slots
					return rows[len(rows)-1]
				}
				p.await("command: exit code")
				procs.Eventually(t, "the outcome is shown", func() bool { row = look(); return row.State == test.state })
				took, code := int64(0), 0
				if row.TookMs != nil {
					took = *row.TookMs
				}
				if row.ExitCode != nil {
					code = *row.ExitCode
				}
				failed := test.state == history.Failed
				if !regexp.MustCompile(test.note).MatchString(row.Note) || row.WorkedBy != "a" || code != test.code || (row.ExitCode != nil) != failed ||
					took < 250 || took > 60_000 || row.GivenUp != (workerType == "tried") || row.BegunAt == "" || (row.Result == store.Failed) != failed ||
					failed != (row.Error == fmt.Sprintf("exit code %d, ended by itself", test.code)) {
					t.Errorf("the row is %+v, want the note %q and exit code %d", row, test.note, test.code)
				}
				if got := leasectl(t, env, "inspect", "slots", "--worker-type", workerType); !strings.Contains(got.stdout, "  "+string(test.state)+"  ") || !strings.Contains(got.stdout, row.Note) {
					t.Errorf("leasectl inspect slots shows %s, want the state %s and the note %q", got.stdout, test.state, row.Note)
				}
				ends(t, p)
				if after := look(); after.State != test.state || after.Result != row.Result {
					t.Errorf("when the worker has ended, the row is %+v, want it as before: %+v", after, row)
				}
				all, _, err := l.Tail(t.Context(), workerType, 100)
				must(t, err)
				told := 0
				for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
					all[i], all[j] = all[j], all[i]
				}
				for _, r := range all {
					if _, ok := r.Outcome(); ok {
						told++
					}
				}
				if problems := verify.Strict(all); len(problems) > 0 || told != 1 {
					t.Errorf("%d records tell the outcome, want one; the ledger: %q", told, problems)
				}
			})
		}
	})
}
