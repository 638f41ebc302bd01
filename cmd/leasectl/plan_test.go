package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/slots"
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
		if got.code != exitOK || got.stderr != "" {
			t.Errorf("leasectl plan %q = %d, %q", args, got.code, got.stderr)
		}
		golden(t, name, got.stdout)
		for line := range strings.Lines(got.stdout) {
			if n := utf8.RuneCountInString(line); n > 81 && name != "plan.json" && !strings.Contains(line, "https://") {
				t.Errorf("%s: line %q has %d columns, want at most 80", name, line, n-1)
			}
		}
	}
}

func TestThePlansStoreMayBeNamedByTheEnvironment(t *testing.T) {
	for env, want := range map[string]string{
		"cosmos://acct/db/c": kindCosmos, "cosmos": kindCosmos, "mongo": kindMongo, "mongodb://h/d": kindMongo, "mongodb+srv://h/d": kindMongo,
	} {
		got := leasectl(t, []string{storeVariable + "=" + env}, "plan", "--every", "1m", "--output", "json")
		var p planJSON
		if err := json.Unmarshal([]byte(got.stdout), &p); err != nil || p.Store != want {
			t.Errorf("leasectl plan with %s = %+v, %v, want %s", env, got, err, want)
		}
	}
}

// The figures that Microsoft works out in its examples, and those of the tables,
// by hand.
func TestThePlansSlotsMayBeCalledAnInterval(t *testing.T) {
	every := leasectl(t, nil, "plan", "--store", "cosmos", "--every", "7m")
	if got := leasectl(t, nil, "plan", "--store", "cosmos", "--interval", "7m"); got != every || got.code != exitOK {
		t.Errorf("leasectl plan --interval 7m = %+v, want that of --every 7m, %+v", got, every)
	}
}

func TestPricesAreThosePublished(t *testing.T) {
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"a create with 10 terms", write(10).Units, 7},
		{"a replacement of 2 terms", replace(2).Units, 10.8},
		{"a point read", pricesOf(kindCosmos, 1).get.Units, 1},
		{"a point read at strong consistency", pricesOf(kindCosmos, 2).get.Units, 2},
		{"a query", pricesOf(kindCosmos, 1).tail.Units, 3.19},
		{"a winner's slot", pricesOf(kindCosmos, 1).of(winner(time.Minute, 10*time.Second)).Units, 3.19 + 3.19 + 5.4},
		{"a loser's slot", pricesOf(kindCosmos, 2).of(loser(time.Minute, 10*time.Second)).Units, 4 * 3.19},
		{"a winner's slot in MongoDB", pricesOf(kindMongo, 1).of(winner(time.Minute, 10*time.Second)).Units, 1 + 3.19 + 5.2},
		{"requests of a trim", pricesOf(kindCosmos, 1).of(trimming(5 * time.Minute)).Requests, 3 + 2 + 53},
		{"a trim", pricesOf(kindCosmos, 1).of(trimming(5 * time.Minute)).Units, 3 + 2*3.19 + 53*(1+5.4)},
		{"requests of a trim in MongoDB", pricesOf(kindMongo, 1).of(trimming(5 * time.Minute)).Requests, 3 + 3},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s = %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestADayHasTheSlotsOfItsSchedule(t *testing.T) {
	for spec, want := range map[string]float64{
		"*/5 * * * *": 288, "0 * * * *": 24, "0 2 * * *": 1, "0 9-17 * * 1-5": 9 * 5.0 / 7, "0 0 1 * *": 12 / 365.25, "@yearly": 1 / 365.25,
	} {
		for _, zone := range []string{"UTC", "America/Los_Angeles"} {
			s := slots.Must(slots.Cron(spec, zone))
			if got := perDay(meanSlot(s)); math.Abs(got/want-1) > 0.01 {
				t.Errorf("%s in %s: %v slots a day, want %v", spec, zone, got, want)
			}
		}
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

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 7.5: "8", 999: "999", 1000: "1,000", 639_360.4: "639,360", 12_345_678: "12,345,678"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%v) = %s, want %s", n, got, want)
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
		schedule, shortest := a.schedule(flags.scheduleFlags, c.Flags())
		a.checkFailover(flags.failover, flags.lead, c.Flags(), shortest)
		if len(a.problems) > 0 {
			return
		}
		kind := kindCosmos
		if mongo {
			kind = kindMongo
		}
		e := estimateOf(kind, flags, schedule, shortest)
		out := e.json()
		var back planJSON
		encoded, err := json.Marshal(out)
		if err == nil {
			err = json.Unmarshal(encoded, &back)
		}
		if diff := cmp.Diff(out, back); err != nil || diff != "" {
			t.Fatalf("plan %q in JSON: %v\n%s", lines, err, diff)
		}
		for _, d := range e.days {
			for what, n := range map[string]float64{"requests": d.cost.Requests, "units": d.cost.Units, "peak": d.peak} {
				if !(n > 0) || math.IsInf(n, 0) {
					t.Errorf("plan %q: %s of %s is %v", lines, what, d.protocol, n)
				}
			}
		}
		// A slot is never cheaper than a claim, and workers never make it so.
		all, one := e.rows[len(e.rows)-1], e.rows[0]
		if all.cost.Units < one.cost.Units || all.each.Append != e.cutting.parts || e.cutting.parts < 1 || e.overLead() <= 0 {
			t.Errorf("plan %q: all %+v, the winner %+v", lines, all, one)
		}
		if text := e.drawing(false); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || !strings.Contains(text, fmt.Sprint(schedule)) {
			t.Errorf("plan %q shows\n%s", lines, text)
		}
	})
}
