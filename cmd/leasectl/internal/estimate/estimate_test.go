package estimate

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// The figures of Microsoft's examples, and those of the tables, worked out by hand.
func TestPricesAreThosePublished(t *testing.T) {
	minutely, trimmed := timingOf(t, workerlease.Options{LeaseInterval: time.Minute}), timingOf(t, workerlease.Options{LeaseInterval: 5 * time.Minute})
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"a create with 10 terms", write(10)[inUnits], 7},
		{"a replacement of 2 terms", replace(2)[inUnits], 10.8},
		{"a point read", pricesOf(Cosmos, 1).each[opGet][inUnits], 1},
		{"a point read at strong consistency", pricesOf(Cosmos, 2).each[opGet][inUnits], 2},
		{"a query", pricesOf(Cosmos, 1).each[opTail][inUnits], 3.19},
		{"a winner's slot", pricesOf(Cosmos, 1).of(winner(minutely, time.Minute, 10*time.Second))[inUnits], 3.19 + 3.19 + 5.4},
		{"a loser's slot", pricesOf(Cosmos, 2).of(loser(minutely, time.Minute, 10*time.Second))[inUnits], 4 * 3.19},
		{"a winner's slot in MongoDB", pricesOf(Mongo, 1).of(winner(minutely, time.Minute, 10*time.Second))[inUnits], 1 + 3.19 + 5.2},
		{"requests of a trim", pricesOf(Cosmos, 1).of(trimming(trimmed, 5*time.Minute))[inRequests], 3 + 2 + 53},
		{"a trim", pricesOf(Cosmos, 1).of(trimming(trimmed, 5*time.Minute))[inUnits], 3 + 2*3.19 + 53*(1+5.4)},
		{"requests of a trim in MongoDB", pricesOf(Mongo, 1).of(trimming(trimmed, 5*time.Minute))[inRequests], 3 + 3},
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

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 7.5: "8", 999: "999", 1000: "1,000", 639_360.4: "639,360", 12_345_678: "12,345,678"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%v) = %s, want %s", n, got, want)
		}
	}
}

// FuzzOf estimates for arbitrary options: all figures are sound, as text and as JSON.
func FuzzOf(f *testing.F) {
	f.Add(int64(5*time.Minute), uint32(3), int64(0), int64(0), int64(0), byte(0))
	f.Add(int64(100*time.Millisecond), uint32(100_000), int64(5*time.Minute), int64(5*time.Minute), int64(0), byte(1))
	f.Add(int64(8784*time.Hour), uint32(3), int64(time.Millisecond), int64(1), int64(80*time.Millisecond), byte(2))
	f.Add(int64(time.Second), uint32(1), int64(1), int64(1), int64(time.Second/2), byte(3))
	f.Add(int64(0), uint32(3), int64(0), int64(0), int64(0), byte(4))
	f.Add(int64(0), uint32(9), int64(time.Second), int64(1), int64(time.Minute), byte(8+1))
	f.Add(int64(0), uint32(70), int64(0), int64(0), int64(30*time.Minute), byte(12+2))
	f.Add(int64(0), uint32(7), int64(0), int64(0), int64(12*time.Hour), byte(16))
	f.Add(int64(5*time.Minute), uint32(3), int64(0), int64(0), int64(0), byte(32))
	f.Add(int64(10*time.Second), uint32(99_999), int64(0), int64(0), int64(0), byte(33))
	f.Add(int64(time.Hour), uint32(3), int64(0), int64(0), int64(time.Minute), byte(64))
	crons := []string{"", "0 2 * * *", "*/5 * * * *", "0 9-17 * * 1-5", "@yearly"} // "" is every length
	f.Fuzz(func(t *testing.T, slot int64, workers uint32, lead, step, failover int64, how byte) {
		length := min(max(time.Duration(slot), slots.MinInterval), slots.MaxInterval).Truncate(time.Millisecond)
		within := func(n int64, most time.Duration) time.Duration { return min(max(time.Duration(n), 0), most) }
		options := workerlease.Options{
			WorkerType: "export", LeaseInterval: length, FailoverWithin: within(failover, length/2),
			Lead: within(lead, 5*time.Minute), Step: within(step, 5*time.Minute),
		}
		if spec := crons[how>>2%5]; spec != "" {
			options.LeaseInterval, options.Schedule = 0, slots.Must(slots.Cron(spec, "Europe/Berlin"))
			options.FailoverWithin = within(failover, time.Hour)
			length = 0
		}
		timing, err := options.Timing()
		if err != nil {
			return
		}
		o := Options{
			Store: []string{Cosmos, Mongo, S3, AzureBlob, Kubernetes}[(int(how&1)+2*int(how>>5))%5], Consistency: []string{Strong, Session}[how>>1&1],
			Workers: int(workers%100_000) + 1, Slot: length, Timing: timing,
		}
		e := Of(o)
		kinds := CountsRequests(o.Store)
		for _, d := range e.days {
			sums := map[string]float64{"requests": d.cost[inRequests], "units": d.cost[inUnits], "peak": d.peak}
			if kinds {
				delete(sums, "units")
				delete(sums, "peak")
				sums["requests of kinds"] = 0
				for _, n := range d.cost[inPuts:] {
					sums["requests of kinds"] += n
				}
				if all := sums["requests of kinds"]; math.Abs(all/d.cost[inRequests]-1) > 1e-9 {
					t.Errorf("%+v: %v requests of %s, and %v by their kinds", options, d.cost[inRequests], d.protocol, all)
				}
			}
			for what, n := range sums {
				if !(n > 0) || math.IsInf(n, 0) {
					t.Errorf("%+v: %s of %s is %v", options, what, d.protocol, n)
				}
			}
		}
		// A slot is never cheaper than a claim, and workers never make it so.
		all, one := e.rows[len(e.rows)-1], e.rows[0]
		if all.cost[inUnits] < one.cost[inUnits] || all.cost[inRequests] < one.cost[inRequests] || all.each[opAppend] != e.parts.n || e.parts.n < 1 || e.overLead() <= 0 && !kinds {
			t.Errorf("%+v: all %+v, the winner %+v", options, all, one)
		}
		if text := e.Text(false); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || !strings.Contains(text, timing.Options.Schedule.String()) {
			t.Errorf("%+v shows\n%s", options, text)
		}
		var back Report
		encoded, err := json.Marshal(e.Report())
		if err == nil {
			err = json.Unmarshal(encoded, &back)
		}
		if diff := cmp.Diff(e.Report(), back); err != nil || diff != "" {
			t.Errorf("%+v in JSON: %v\n%s", options, err, diff)
		}
	})
}
