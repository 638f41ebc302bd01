package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/estimate"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
)

func TestPlanShowsTablesAndJSON(t *testing.T) {
	for name, args := range map[string][]string{
		"plan.cosmos":   {"--store", "cosmos", "--every", "5m"},
		"plan.mongo":    {"--store", "mongo", "--cron", "0 2 * * *", "--zone", "Europe/Berlin", "--workers", "40"},
		"plan.failover": {"--store", "cosmos://acct/db/c", "--every", "5m", "--failover-within", "20s", "--consistency", "session"},
		"plan.json":     {"--store", "mongodb://u:hunter2@h/d", "--every", "5m", "--output", "json"},
	} {
		got := leasectl(t, nil, append([]string{"plan"}, args...)...)
		if got.code != exit.OK || got.stderr != "" {
			t.Errorf("leasectl plan %q = %d, %q", args, got.code, got.stderr)
		}
		golden.Compare(t, name, got.stdout)
		for line := range strings.Lines(got.stdout) {
			if n := utf8.RuneCountInString(line); n > 81 && name != "plan.json" && !strings.Contains(line, "https://") {
				t.Errorf("%s: line %q has %d columns, want at most 80", name, line, n-1)
			}
		}
	}
}

func TestThePlansStoreMayBeNamedByTheEnvironment(t *testing.T) {
	for env, want := range map[string]string{
		"cosmos://acct/db/c": estimate.Cosmos, "cosmos": estimate.Cosmos, "mongo": estimate.Mongo, "mongodb://h/d": estimate.Mongo, "mongodb+srv://h/d": estimate.Mongo,
	} {
		got := leasectl(t, []string{storeuri.Variable + "=" + env}, "plan", "--every", "1m", "--output", "json")
		var p estimate.Report
		if err := json.Unmarshal([]byte(got.stdout), &p); err != nil || p.Store != want {
			t.Errorf("leasectl plan with %s = %+v, %v, want %s", env, got, err, want)
		}
	}
}

func TestThePlansSlotsMayBeCalledAnInterval(t *testing.T) {
	every := leasectl(t, nil, "plan", "--store", "cosmos", "--every", "7m")
	if got := leasectl(t, nil, "plan", "--store", "cosmos", "--interval", "7m"); got != every || got.code != exit.OK {
		t.Errorf("leasectl plan --interval 7m = %+v, want that of --every 7m, %+v", got, every)
	}
}

func TestAPlanOfManyWorkersSaysThatThePeakIsTooHigh(t *testing.T) {
	verdict := func(args ...string) string {
		return leasectl(t, nil, append([]string{"plan", "--store", "cosmos", "--every", "5m"}, args...)...).stdout
	}
	const fits, high = "\n400 RU/s carry the peak", "\n400 RU/s don't carry the peak: have 1,300,"
	for args, want := range map[string]string{
		"--workers 1": "1 worker of one type · every 5m · ", "--workers 30": fits, "--workers 100": high, "--workers 100 --consistency session": "have 700,", "--workers 100 --step 30s --lead 5m": fits,
	} {
		if got := verdict(strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("leasectl plan %s = %s, want %q in it", args, got, want)
		}
	}
}
