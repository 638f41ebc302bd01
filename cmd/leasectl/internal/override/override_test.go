package override

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/testutil/faultstore"
)

// ledger has some records, at a minute after noon.
func ledger(records ...store.Record) *memory.Ledger {
	l := memory.New(memory.Options{Clock: clocks.NewFake(recordtest.Minutes(1))})
	for _, r := range records {
		l.Put(r)
	}
	return l
}

// ran is what Run shows of a ledger, and its error.
func ran(t *testing.T, l store.Ledger, seq int64, ask func(string) (string, error)) (string, error) {
	t.Helper()
	var shown strings.Builder
	o := Options{WorkerType: "export", InstanceID: "op", Seq: seq, Ask: ask, Timeout: time.Minute}
	err := inLedger(t.Context(), storeuri.Target{Scheme: storeuri.MongoDB, Shown: "mongodb://h/d"}, l, o, &shown)
	return shown.String(), err
}

func yes(string) (string, error) { return "y", nil }

func TestWhatIsInForceAndWhatItRisksIsShown(t *testing.T) {
	held, far, grouped := recordtest.Grant(1, 0, "a"), recordtest.Grant(1, 0, "a"), recordtest.Grant(1, 0, "evil\x1b[2J")
	far.DoneUntil = recordtest.Minutes(60 * 24 * 30)
	grouped.Group = "eu"
	over := recordtest.Grant(1, -1, "a")
	long := recordtest.Grant(2, 0, "b")
	long.WindowEnd = long.WindowStart.AddDate(2, 0, 0)
	var many []store.Record
	for i := range int64(14) {
		r := recordtest.Part(201+i, recordtest.Grant(1, 0, "a"), 0, 60*24*400)
		r.Claim += string(rune('a' + i))
		many = append(many, r)
	}
	const until = "until 2026-03-02T12:05:00.000Z\n"
	for name, test := range map[string]struct {
		records []store.Record
		want    []string // lines, or how they begin
	}{
		"a lease": {[]store.Record{held}, []string{
			`worker type export, record 1: a grant by "a", ` + until, `in force: record 1, "a", token 1772452800000, ` + until,
			`risk: if "a" still works, two work ` + until,
		}},
		"a group's": {[]store.Record{grouped}, []string{
			"worker type export, record 1: a grant by \"evil\\x1b[2J\", " + until, `in force: record 1, "evil\x1b[2J" (group "eu"), token 1772452800000, ` + until,
			`risk: if "evil\x1b[2J" still works, two work ` + until,
		}},
		"what is over": {[]store.Record{over}, []string{`worker type export, record 1: a grant by "a", until 2026-03-02T12:00:00.000Z`, "in force: nothing that can be read\n"}},
		"what is done": {[]store.Record{far}, []string{
			`worker type export, record 1: a grant by "a", `, `in force: record 1, `, "done: slots up to 2026-04-01T12:00:00.000Z, from then on up to none\n",
			`risk: if "a" still works`, "risk: jobs of slots after none run again, even if they were done\n",
		}},
		"poison": {[]store.Record{held, long}, []string{
			"worker type export, record 2: poison: window is 17544h0m0s long, more than 8784h0m0s\n", `in force: record 2, "b", `, `in force: record 1, "a", `,
			`risk: if "b" still works, two work until 2028-`, `risk: if "a" still works, `, "risk: if a worker obeys what others can't, two work until it looks again\n",
		}},
		"what can't be read": {[]store.Record{held, {WorkerType: "export", Seq: 2, Defect: "not\na record"}}, []string{
			"worker type export, record 2: poison: invalid record: not a record\n", `in force: record 1, "a", `, `risk: if "a" still works, `, "risk: if a worker obeys",
		}},
		"much": {many, []string{"worker type export, record 214: poison: ", "in force: record 214", "", "", "", "", "", "", "", "", "", "in force: 4 more, of older records\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			head := test.records[len(test.records)-1].Seq
			got, err := ran(t, ledger(test.records...), head, func(question string) (string, error) { asked = question; return "y", nil })
			lines := strings.SplitAfter(got, "\n")
			for i, want := range test.want {
				if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
					t.Errorf("it shows\n%swant line %d to begin with %q", got, i, want)
				}
			}
			if n := len(lines) - 2; n != len(test.want) && name != "much" {
				t.Errorf("it shows\n%swant %d lines before the last", got, len(test.want))
			}
			if err != nil || !strings.HasPrefix(asked, "override record ") || !strings.HasPrefix(lines[len(lines)-2], "wrote record ") {
				t.Errorf("it asked %q, showed %q and returned %v", asked, got, err)
			}
		})
	}
}

func TestEachOutcomeHasItsExitCode(t *testing.T) {
	failing := func(op faultstore.Op, f faultstore.Fault) store.Ledger {
		return faultstore.New(ledger(recordtest.Grant(1, 0, "a")), faultstore.Options{Plan: func(c faultstore.Call) faultstore.Fault {
			if c.Op == op {
				return f
			}
			return faultstore.Fault{}
		}})
	}
	for name, test := range map[string]struct {
		ledger store.Ledger
		seq    int64
		ask    func(string) (string, error)
		code   int
		want   string // of the error
		try    string
	}{
		"no":              {ledger(recordtest.Grant(1, 0, "a")), 1, func(string) (string, error) { return "no", nil }, exit.Failure, "nothing was written", ""},
		"nobody":          {ledger(recordtest.Grant(1, 0, "a")), 1, nil, exit.Usage, "the input is no terminal", "--yes"},
		"another head":    {ledger(recordtest.Grant(1, 0, "a")), 2, yes, exit.Failure, "workers go by record 1, not 2; nothing was written", "leasectl inspect slots --worker-type export"},
		"nothing there":   {ledger(), 1, yes, exit.Failure, "there is no record that workers go by", "leasectl inspect slots --worker-type export"},
		"outcome unknown": {failing(faultstore.OpAppend, faultstore.Failure()), 1, yes, exit.Unreachable, "record 2 is not there, and may come yet", "leasectl inspect slots --worker-type export"},
		"no time":         {failing(faultstore.OpNow, faultstore.Failure()), 1, yes, exit.Unreachable, "injected fault", "check that the server runs"},
		"an odd time":     {failing(faultstore.OpNow, faultstore.OtherServer("x", 200*365*24*time.Hour)), 1, yes, exit.Unreachable, "store time is not known well enough", ""},
		"no reads":        {failing(faultstore.OpTail, faultstore.Failure()), 1, yes, exit.Unreachable, "injected fault", "check that the server runs"},
		"an interrupt":    {ledger(recordtest.Grant(1, 0, "a")), 1, func(string) (string, error) { return "", exit.With(exit.Interrupted, context.Canceled) }, exit.Interrupted, "context canceled", ""},
	} {
		_, err := ran(t, test.ledger, test.seq, test.ask)
		e, ok := errors.AsType[*exit.Error](err)
		if !ok || e.Code != test.code || !strings.Contains(e.Error(), test.want) || !strings.HasPrefix(e.Try, test.try) || (e.Try == "") != (test.try == "") {
			t.Errorf("%s: %v (%+v), want code %d, %q, and to try %q", name, err, e, test.code, test.want, test.try)
		}
	}
}
