package app

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/store"
)

// succeeded is how often a worker of the type t says that its command succeeded, and when last, in one scrape.
func succeeded(t *testing.T, p *process) (count float64, last time.Time) {
	t.Helper()
	_, scrape := probed(t, p, "/metrics")
	metric := func(name string) float64 {
		match := regexp.MustCompile(`(?m)^` + name + `\{worker_type="t"\} (\S+)$`).FindStringSubmatch(scrape)
		if match == nil {
			return 0
		}
		value, err := strconv.ParseFloat(match[1], 64)
		must(t, err)
		return value
	}
	if seconds := metric("slotlease_task_last_success_timestamp_seconds"); seconds != 0 {
		last = time.UnixMilli(int64(seconds*1000 + 0.5))
	}
	return metric("slotlease_tasks_succeeded_total"), last
}

// The time since the last success is that since a command ended with exit code 0, a plain one like a job.
func TestACommandThatSucceedsIsCounted(t *testing.T) {
	for name, flags := range map[string][]string{
		"a command":                  {"--every", "5s"},
		"a command, again and again": {"--every", oneSlot, "--continuous", "--on-exit", "keep"},
		"a command, taken over soon": {"--every", oneSlot, "--failover-within", "1h"},
		"a job":                      {"--every", oneSlot, "--once-per-slot", "--start-within", oneSlot},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, storeArg := newLedger(t)
			file := filepath.Join(t.TempDir(), "go")
			p := startRun(t, storeArg, "a", append(flags, "--listen", "0"), "sh", "-c", `while [ ! -e "$0" ]; do sleep 0.02; done`, file)
			p.await("command started")
			if count, last := succeeded(t, p); count != 0 || !last.IsZero() {
				t.Errorf("while it runs there are %v successes, the last at %s, want none", count, store.Format(last))
			}
			before := storeTime(t, l)
			must(t, os.WriteFile(file, nil, 0o600))
			var count float64
			var last time.Time
			procs.Eventually(t, "a success is counted", func() bool { count, last = succeeded(t, p); return !last.IsZero() })
			if after := storeTime(t, l); count != 1 || last.Before(before) || last.After(after) {
				t.Errorf("%v successes, the last at %s, want one, from %s to %s", count, store.Format(last), store.Format(before), store.Format(after))
			}
			ends(t, p)
		})
	}
}

// What fails has not succeeded, nor has what was told to end with its lease, whatever its exit code.
func TestACommandThatFailsOrIsToldToEndIsNoSuccess(t *testing.T) {
	for name, test := range map[string]struct{ command, ended string }{
		"that fails":          {"exit 3", "command: exit code 3, ended by itself"},
		"that is told to end": {`trap 'exit 0' TERM; while :; do sleep 0.01; done`, "command: exit code 0, stopped at the deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, storeArg := newLedger(t)
			p := startRun(t, storeArg, "a", []string{"--every", "2s", "--stop-grace", "900ms", "--listen", "0"}, "sh", "-c", test.command)
			p.awaitMatch("(?s)" + regexp.QuoteMeta(test.ended) + ".*command started.*: ended")
			if count, last := succeeded(t, p); count != 0 || !last.IsZero() {
				t.Errorf("%v successes, the last at %s, want none", count, store.Format(last))
			}
			ends(t, p)
		})
	}
}
