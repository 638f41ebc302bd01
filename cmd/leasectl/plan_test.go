package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/estimate"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/golden"
)

func TestPlanShowsTablesAndJSON(t *testing.T) {
	for name, args := range map[string][]string{
		"plan.cosmos":   {"--store", "cosmos", "--every", "5m"},
		"plan.mongo":    {"--store", "mongo", "--every", "5m", "--workers", "40"},
		"plan.cron":     {"--store", "cosmos://acct/db/c", "--cron", "0 2 * * *", "--zone", "Europe/Berlin", "--workers", "1", "--consistency", "session"},
		"plan.failover": {"--store", "cosmos", "--every", "5m", "--failover-within", "20s"},
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
		"--workers 30": fits, "--workers 100": high, "--workers 100 --consistency session": "have 700,", "--workers 100 --step 30s --lead 5m": fits,
	} {
		if got := verdict(strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("leasectl plan %s = %s, want %q in it", args, got, want)
		}
	}
}

// FuzzPlan gives plan arbitrary options, one to a line: what it accepts it can
// show, and all figures are sound.
func FuzzPlan(f *testing.F) {
	for _, line := range []string{
		"--every\n5m", "--every\n100ms\n--workers\n100000\n--lead\n5m\n--step\n5m", "--every\n8784h\n--consistency\nsession", "--cron\n@yearly\n--zone\nPacific/Apia",
		"--cron\n0,1 2 * * 1-5\n--step\n1ns\n--lead\n1ns", "--every\n1s\n--workers\n0", "--every\n1ms", "--cron\n* *",
		"--every\n5m\n--failover-within\n20s", "--every\n8784h\n--failover-within\n80ms\n--lead\n1ms", "--cron\n@daily\n--failover-within\n12h\n--workers\n7", "--every\n1s\n--failover-within\n1s",
	} {
		f.Add(line, true)
		f.Add(line, false)
	}
	f.Fuzz(func(t *testing.T, lines string, mongo bool) {
		a, flags, c := &app{}, defaultPlan(), &cobra.Command{Use: "plan"}
		a.planFlags(c, flags)
		if err := c.ParseFlags(strings.Split(lines, "\n")); err != nil {
			return
		}
		o := a.planOptions(flags, c.Flags())
		if len(a.problems) > 0 {
			return
		}
		o.Store = estimate.Cosmos
		if mongo {
			o.Store = estimate.Mongo
		}
		e := estimate.Of(o)
		out := e.Report()
		var back estimate.Report
		encoded, err := json.Marshal(out)
		if err == nil {
			err = json.Unmarshal(encoded, &back)
		}
		if diff := cmp.Diff(out, back); err != nil || diff != "" {
			t.Fatalf("plan %q in JSON: %v\n%s", lines, err, diff)
		}
		for _, d := range out.PerDay {
			for what, n := range map[string]float64{"requests": d.Requests, "units": d.Units, "peak": d.Peak} {
				if !(n >= 0) || math.IsInf(n, 0) || what == "peak" && n == 0 {
					t.Errorf("plan %q: %s of %s is %v", lines, what, d.Protocol, n)
				}
			}
		}
		// A slot is never cheaper than a claim, and workers never make it so.
		all, one := out.PerSlot[len(out.PerSlot)-1], out.PerSlot[0]
		if all.Units < one.Units || all.Operations["append"] < 1 || max(1, out.Parts) != all.Operations["append"] {
			t.Errorf("plan %q: all %+v, the winner %+v", lines, all, one)
		}
		if text := e.Text(false); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || !strings.Contains(text, fmt.Sprint(o.Timing.Options.Schedule)) {
			t.Errorf("plan %q shows\n%s", lines, text)
		}
	})
}
