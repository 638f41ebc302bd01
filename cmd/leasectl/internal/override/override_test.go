package override

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease/operate"
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
	err := inLedger(t.Context(), storeuri.Target{Scheme: "mongodb", Shown: "mongodb://h/d"}, l, o, Screen{Plan: &shown, Result: &shown})
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
	overridden, high, day, slot := recordtest.Grant(2, 0, "op"), recordtest.Grant(2, 0, "b"), recordtest.Grant(1, 0, "a"), recordtest.Grant(1, 0, "a")
	overridden.Kind, overridden.WindowStart, overridden.WindowEnd = store.KindOverride, recordtest.Minutes(1), recordtest.Minutes(1)
	overridden.Token = recordtest.Minutes(1).UnixMilli()
	high.WindowEnd, high.Token = high.WindowStart.AddDate(2, 0, 0), recordtest.Minutes(10).UnixMilli()
	day.DoneUntil, slot.DoneUntil = recordtest.Minutes(60*24-1), recordtest.Minutes(5)
	above := func(seq int64) store.Record { return recordtest.Grant(seq, 1, "b") }
	odd := recordtest.Grant(1, 0, "a")
	odd.Kind = "x\nrisk: none\u202e\x1b[2J"
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
		"a kind that forges lines": {[]store.Record{odd}, []string{
			`worker type export, record 1: a "x\nrisk: none\u202e\x1b[2J" by "a", ` + until, `in force: record 1, "a", token 1772452800000, ` + until,
			`risk: if "a" still works, two work ` + until,
		}},
		"what is over": {[]store.Record{over}, []string{`worker type export, record 1: a grant by "a", until 2026-03-02T12:00:00.000Z`, "in force: nothing\n"}},
		"what can't be read alone": {[]store.Record{over, {WorkerType: "export", Seq: 2, Defect: "no record"}}, []string{
			"worker type export, record 2: poison: ", "in force: nothing that can be read\n", "risk: if a worker obeys what others can't",
		}},
		"an override": {[]store.Record{held, overridden}, []string{
			`worker type export, record 2: an override by "op", as of 2026-03-02T12:01:00.000Z`, `overridden already: record 1, "a", token 1772452800000, ` + until,
			`risk: if "a" still works, two work ` + until,
		}},
		"a token that is higher": {[]store.Record{over, high}, []string{
			"worker type export, record 2: poison: ", `in force: record 2, "b", token 1772453400000`, `risk: if "b" still works, two work `,
			`risk: token 1772453400000 of "b" isn't lower than those of the next leases, so nothing refuses it` + "\n", "risk: if a worker obeys what others can't",
		}},
		"above a free key": {[]store.Record{held, above(3)}, []string{
			`worker type export, record 1: a grant by "a", `, `in force: record 1, "a", `, `above a free key: record 3, a grant by "b", until 2026-03-02T12:10:00.000Z` + "\n",
			`risk: if "a" still works, two work `, `risk: this takes the free key below record 3, so that workers go by that: a grant by "b", until 2026-03-02T12:10:00.000Z` + "\n",
		}},
		"poison above a free key": {[]store.Record{held, {WorkerType: "export", Seq: 3, Defect: "no record"}}, []string{
			`worker type export, record 1: a grant by "a", `, `in force: record 1, "a", `, "above a free key: record 3, poison: invalid record: no record\n",
			`risk: if "a" still works, two work `, "risk: this takes the free key below record 3, so that workers stop at that: poison: invalid record: no record\n",
		}},
		"above two free keys": {[]store.Record{held, above(4)}, []string{
			`worker type export, record 1: a grant by "a", `, `in force: record 1, "a", `, `above a free key: record 4, a grant by "b", `, `risk: if "a" still works, two work `,
		}},
		"done for a day": {[]store.Record{day}, []string{
			`worker type export, record 1: a grant by "a", `, `in force: record 1, "a", `, `risk: if "a" still works, two work `,
			"risk: no job runs before 2026-03-03T11:59:00.000Z, because slots up to then count as done: --done-until TIME says another\n",
		}},
		"the slot that is done": {[]store.Record{slot}, []string{`worker type export, record 1: a grant by "a", `, `in force: record 1, "a", `, `risk: if "a" still works, two work `}},
		"what is done": {[]store.Record{far}, []string{
			`worker type export, record 1: a grant by "a", `, `in force: record 1, `, "done: slots up to 2026-04-01T12:00:00.000Z, from then on up to none\n",
			`risk: if "a" still works`, "risk: jobs of slots after none run again, even if they were done\n",
		}},
		"poison": {[]store.Record{held, long}, []string{
			"worker type export, record 2: poison: window is 17544h0m0s long, more than 8784h0m0s\n", `in force: record 1, "a", `, `in force: record 2, "b", `,
			`risk: if "a" still works, `, `risk: if "b" still works, two work until 2028-`, "risk: if a worker obeys what others can't, two work until it looks again\n",
		}},
		"what can't be read": {[]store.Record{held, {WorkerType: "export", Seq: 2, Defect: "not\na record"}}, []string{
			"worker type export, record 2: poison: invalid record: not a record\n", `in force: record 1, "a", `, `risk: if "a" still works, `, "risk: if a worker obeys",
		}},
		"a holder below much": {append([]store.Record{recordtest.Part(200, held, 0, 5)}, many...), []string{
			"worker type export, record 214: poison: ", `in force: record 200, "a", `, "in force: record 214", "", "", "", "", "", "", "", "", "in force: 5 more, of older records\n",
		}},
		"much": {many, []string{"worker type export, record 214: poison: ", "in force: record 214", "", "", "", "", "", "", "", "", "", "in force: 4 more, of older records\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			head := test.records[len(test.records)-1].Seq
			if strings.HasPrefix(name, "above ") || strings.HasSuffix(name, " above a free key") {
				head = 1
			}
			got, err := ran(t, ledger(test.records...), head, func(question string) (string, error) { asked = question; return "y", nil })
			lines := strings.SplitAfter(got, "\n")
			for i, want := range test.want {
				if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
					t.Errorf("it shows\n%swant line %d to begin with %q", got, i, want)
				}
			}
			if n := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "wrote record ") }); n != len(test.want) && !strings.HasSuffix(name, "much") {
				t.Errorf("it shows\n%swant %d lines before the outcome", got, len(test.want))
			}
			if i := len(test.want); !strings.HasSuffix(name, "much") && i < len(lines) && strings.HasPrefix(lines[i], "wrote record ") {
				lines = lines[:i+2] // What workers go by now may follow.
			}
			if err != nil || !strings.HasPrefix(asked, "override record ") || !strings.HasPrefix(lines[len(lines)-2], "wrote record ") {
				t.Errorf("it asked %q, showed %q and returned %v", asked, got, err)
			}
		})
	}
}

// After it was written, the operator is told what workers go by, if that is another record.
func TestWhatWorkersGoByAfterwardsIsShown(t *testing.T) {
	far := recordtest.Grant(1, 0, "a")
	far.WindowEnd = far.WindowEnd.AddDate(0, 0, 300)
	next := recordtest.Grant(3, 1, "b")
	for name, test := range map[string]struct {
		ledger func() store.Ledger
		want   string
	}{
		"nothing else": {func() store.Ledger { return ledger(far) }, ""},
		"what stood above a free key": {
			func() store.Ledger { return ledger(far, next) },
			"workers go by record 3 now: a grant by \"b\", until 2026-03-02T12:10:00.000Z\ntry: leasectl override --worker-type export --seq 3 --store mongodb://h/d\n",
		},
		"poison": {
			func() store.Ledger {
				return ledger(far, store.Record{WorkerType: "export", Seq: 3, Defect: "no record"})
			},
			"workers go by record 3 now: poison: invalid record: no record\n",
		},
		"a worker's claim": {func() store.Ledger {
			inner := ledger(far)
			return appended{inner, func(r store.Record) {
				r.Seq, r.Kind, r.Claim, r.InstanceID, r.Token = r.Seq+1, store.KindGrant, "c", "ben", r.Token+1
				r.WindowEnd = recordtest.Minutes(5)
				inner.Put(r)
			}}
		}, "workers go by record 3 now: a grant by \"ben\", until 2026-03-02T12:05:00.000Z\n"},
	} {
		got, err := ran(t, test.ledger(), 1, yes)
		_, wrote, _ := strings.Cut(got, "\nwrote record 2: ")
		_, after, ok := strings.Cut(wrote, "\n")
		if err != nil || !ok || after != test.want {
			t.Errorf("%s: it shows\n%s(%v), want it to end with %q", name, got, err, test.want)
		}
	}
}

// appended calls a function after each append.
type appended struct {
	store.Ledger

	then func(store.Record)
}

func (a appended) Append(ctx context.Context, r store.Record) error {
	err := a.Ledger.Append(ctx, r)
	a.then(r)
	return err
}

// denying refuses to be written.
type denying struct{ store.Ledger }

func (denying) Append(context.Context, store.Record) error {
	return fmt.Errorf("mongo: append: %w: not authorized on db to execute command insert", store.ErrDenied)
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
	down := faultstore.Failure()
	down.Err = fmt.Errorf("%w: %w", faultstore.ErrInjected, syscall.ECONNREFUSED)
	last := func(below int64, n int) store.Record { return recordtest.Grant(store.MaxSeq-below, n, "a") }
	for name, test := range map[string]struct {
		ledger store.Ledger
		seq    int64
		ask    func(string) (string, error)
		code   int
		want   string // of the error
		try    string
	}{
		"not allowed":     {denying{ledger(recordtest.Grant(1, 0, "a"))}, 1, yes, exit.Denied, "access denied", "check user, password"},
		"a full ledger":   {ledger(last(2, -1), last(1, 0)), store.MaxSeq - 1, yes, exit.Failure, "the ledger is full: no number is left above record 9007199254740989: use another worker type; nothing was written", ""},
		"outcome unknown": {failing(faultstore.OpAppend, faultstore.Failure()), 1, yes, exit.Unreachable, "record 2 is not there, and may come yet", "leasectl inspect slots --worker-type export"},
		"no time":         {failing(faultstore.OpNow, down), 1, yes, exit.Unreachable, "injected fault", "check that the server runs"},
		"an odd time":     {failing(faultstore.OpNow, faultstore.OtherServer("x", 200*365*24*time.Hour)), 1, yes, exit.Unreachable, "store time is not known well enough", ""},
		"no reads":        {failing(faultstore.OpTail, down), 1, yes, exit.Unreachable, "injected fault", "check that the server runs"},
	} {
		_, err := ran(t, test.ledger, test.seq, test.ask)
		e, ok := errors.AsType[*exit.Error](err)
		if !ok || e.Code != test.code || !strings.Contains(e.Error(), test.want) || !strings.HasPrefix(e.Try, test.try) || (e.Try == "") != (test.try == "") {
			t.Errorf("%s: %v (%+v), want code %d, %q, and to try %q", name, err, e, test.code, test.want, test.try)
		}
	}
}

// An override ends what is in force, and no pause.
func TestAPauseThatGoesOnIsNamed(t *testing.T) {
	l := ledger(recordtest.Grant(1, 0, "worker-a"))
	if _, err := operate.On(l).Give(t.Context(), operate.Order{Kind: store.OrderPause, WorkerType: "export", For: time.Hour, InstanceID: "ann"}); err != nil {
		t.Fatal(err)
	}
	got, err := ran(t, l, 2, yes)
	if err != nil || !strings.Contains(got, ", but the worker type stays paused until ") || !strings.Contains(got, " by ann\n") {
		t.Errorf("override = %s, %v, want that the pause goes on", got, err)
	}
}
