package app

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

func TestATimelineOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		env = append(env, "COLUMNS=80")
		now := storeTime(t, l)
		start := now.Truncate(5 * time.Minute).Add(-15 * time.Minute)
		for i, holder := range []string{"anna", "anna", "bert"} {
			r := recordtest.Grant(int64(i+1), 0, holder)
			if i == 2 {
				r.WorkerType, r.Seq = "import", 1 // Nobody had the third slot of the first type.
			}
			r.SlotStart = start.Add(time.Duration(i) * 5 * time.Minute)
			r.SlotEnd = r.SlotStart.Add(5 * time.Minute)
			r.WindowStart, r.WindowEnd, r.Token = r.SlotStart, r.SlotEnd, r.SlotStart.UnixMilli()
			must(t, l.Append(t.Context(), r))
		}
		for args, want := range map[string]string{
			"--since 31m":                      `(?m)^export  *A━+·+$\n^import  *B━+·+$\n\nA anna  B bert`,
			"--since 31m --worker-type import": `(?m)^import  A━+·+$\n\nA bert`,
			"--since 31m --worker-type import --worker-type export": `(?m)^import .*\n^export `,
		} {
			got := leasectl(t, env, append([]string{"inspect", "slots", "--timeline"}, strings.Fields(args)...)...)
			if got.code != exit.OK || !regexp.MustCompile(want).MatchString(got.stdout) {
				t.Errorf("leasectl inspect slots --timeline %s = %+v, want a match of %s", args, got, want)
			}
		}
		if got := leasectl(t, env, "inspect", "slots", "--timeline", "--worker-type", "exprot"); got.code != exit.Usage || !strings.Contains(got.stderr, "--worker-type export") {
			t.Errorf("leasectl inspect slots --timeline of another worker type = %+v", got)
		}
	})
}
