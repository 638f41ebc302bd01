package failovers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// In the cases, the failover begins at minute 5: record 2 is lost, which granted b a lease, and c gets one in its place.
var tokenOfB, tokenOfC = recordtest.Minutes(5).UnixMilli(), recordtest.Minutes(5.5).UnixMilli()

func worked(who string, token int64, from, to float64) *turn {
	return &turn{who: who, token: token, first: recordtest.Minutes(from), last: recordtest.Minutes(to)}
}

func reported(who string, seq int64, at float64) report {
	return report{who: who, seq: seq, at: recordtest.Minutes(at)}
}

// ledger has record 2 anew, granted to c with a token, and record 3 that says what was lost; and the findings of both.
func ledger(token int64, lost store.Lost) (map[int64]store.Record, []verify.Finding) {
	below, granted := recordtest.Grant(1, 0, "a"), recordtest.Grant(2, 1, "c")
	granted.Token = token
	says := recordtest.Told(granted, 3, store.Outcome{})
	says.Metadata = lost.Metadata()
	v := verify.New(verify.Options{WorkerType: "export", Now: recordtest.Minutes(16)})
	all := map[int64]store.Record{}
	for _, r := range []store.Record{below, granted, says} {
		v.Add(r)
		all[r.Seq] = r
	}
	var found []verify.Finding
	for _, f := range v.Report().Findings {
		if f.Code == verify.BesideLost || f.Code == verify.RecordsLost {
			found = append(found, f)
		}
	}
	return all, found
}

// An overlap, and a loss without one, must be told by an event and by what verify finds; and no store may have any but that.
func TestEachOverlapAndEachLossIsToldTwice(t *testing.T) {
	b, c := worked("b", tokenOfB, 4, 7), worked("c", tokenOfC, 6, 8)
	lostB := store.Lost{Seq: 2, Token: tokenOfB, Claim: "lost", InstanceID: "b", Start: recordtest.Minutes(5), End: recordtest.Minutes(10)}
	told := []report{reported("b", 2, 6)}
	records, found := ledger(tokenOfC, lostB)
	if len(found) != 2 {
		t.Fatalf("verify finds %+v, want a lost record, and a lease beside it", found)
	}
	only := func(code verify.Code) (some []verify.Finding) {
		for _, f := range found {
			if f.Code == code {
				some = append(some, f)
			}
		}
		return some
	}
	another := func(records map[int64]store.Record, found []verify.Finding) func(a *account) {
		return func(a *account) { a.records, a.findings = records, found }
	}
	inTurn := func(token int64) func(a *account) {
		return func(a *account) {
			a.turns, a.reports, a.findings = []*turn{worked("c", token, 7.1, 8), b}, nil, nil
		}
	}
	withToken := lostB
	withToken.Token++
	ofD := lostB
	ofD.InstanceID = "d"
	sameToken := lostB
	sameToken.Token = tokenOfC
	upTo := store.Lost{Seq: 2, Token: tokenOfB, Claim: "lost", InstanceID: "b", Start: recordtest.Minutes(5), End: recordtest.Minutes(5)}
	for name, of := range map[string]struct {
		loses          bool
		change         func(a *account)
		overlaps, lost int
		want           []string // a part of each complaint, in their order
	}{
		"nobody works beside another, nothing is lost": {false, func(a *account) {
			a.turns, a.reports, a.findings = []*turn{b, worked("c", tokenOfC, 7.1, 8)}, nil, nil
		}, 0, 0, nil},
		"two overlap, and both reports are there": {true, func(*account) {}, 1, 1, nil},
		"the later of them comes first":           {true, func(a *account) { a.turns = []*turn{c, b} }, 1, 1, nil},
		"the other one reports it":                {true, func(a *account) { a.reports = []report{reported("c", 2, 6)} }, 1, 1, nil},
		"two overlap with the same token": {true, func(a *account) {
			a.turns = []*turn{worked("b", tokenOfC, 4, 7), c}
			a.records, a.findings = ledger(tokenOfC, sameToken)
		}, 1, 1, nil},
		"two overlap at a single moment": {true, func(a *account) { a.turns = []*turn{b, worked("c", tokenOfC, 7, 8)} }, 1, 1, nil},
		"and the later turn comes first": {true, func(a *account) { a.turns = []*turn{worked("c", tokenOfC, 7, 8), b} }, 1, 1, nil},
		"three overlap, one of them untold": {true, func(a *account) { a.turns = []*turn{b, c, worked("d", tokenOfC+1, 7.5, 8)} }, 2, 1, []string{
			"neither has reported", "verify doesn't find that",
		}},

		"two overlap on a store that keeps records": {false, func(a *account) { a.reports, a.findings = nil, nil }, 1, 0, []string{fmt.Sprintf("c with token %d", tokenOfC)}},
		"the same with all told": {false, func(*account) {}, 1, 1, []string{
			fmt.Sprintf("b with token %d", tokenOfB), "granted-beside-lost in record 2, on a store that keeps", "records-lost in record 3, on a store that keeps", "record 2 is lost, on a store that keeps",
		}},
		"nobody reports an overlap":        {true, func(a *account) { a.reports = nil }, 1, 1, []string{"neither has reported", "no worker has reported it"}},
		"only a third reports it":          {true, func(a *account) { a.reports = []report{reported("a", 2, 6)} }, 1, 1, []string{"neither has reported"}},
		"only another history is reported": {true, func(a *account) { a.reports = []report{reported("b", 0, 6), reported("c", 0, 6)} }, 1, 1, []string{"neither has reported", "no worker has reported it"}},
		"it was reported before the failover": {true, func(a *account) { a.reports = []report{reported("b", 2, 4.9)} }, 1, 1, []string{
			"before the failover", "neither has reported", "no worker has reported it",
		}},
		"they overlapped before the failover": {true, func(a *account) { a.turns = []*turn{b, worked("c", tokenOfC, 4.5, 8)} }, 1, 1, []string{"before the failover"}},

		"verify finds nothing":                  {true, func(a *account) { a.findings = nil }, 1, 0, []string{"verify doesn't find that", "verify finds no lost record"}},
		"verify finds the loss only":            {true, func(a *account) { a.findings = only(verify.RecordsLost) }, 1, 1, []string{"verify doesn't find that"}},
		"it finds one of another lost token":    {true, another(ledger(tokenOfC, withToken)), 1, 1, []string{"verify doesn't find that"}},
		"it finds one of another lost worker":   {true, another(ledger(tokenOfC, ofD)), 1, 1, []string{"verify doesn't find that"}},
		"it finds one of another granted token": {true, another(ledger(tokenOfC+1, lostB)), 1, 1, []string{"verify doesn't find that"}},
		"the granted one is of another worker":  {true, func(a *account) { a.turns = []*turn{b, worked("d", tokenOfC, 6, 8)} }, 1, 1, []string{"verify doesn't find that"}},
		"it finds a lost record of that worker, and another beside": {true, func(a *account) {
			a.records, a.findings = ledger(tokenOfC, withToken)
			r := a.records[3]
			r.Seq, r.Metadata = 4, store.Lost{Seq: 7, Token: tokenOfB, Claim: "other", InstanceID: "b", Start: recordtest.Minutes(5), End: recordtest.Minutes(5)}.Metadata()
			a.records[4] = r
		}, 1, 1, []string{"verify doesn't find that"}},

		"a loss without an overlap is told":     {true, func(a *account) { a.turns, a.findings = a.turns[:1], only(verify.RecordsLost) }, 0, 1, nil},
		"it is reported, and not in the ledger": {true, func(a *account) { a.turns, a.findings = a.turns[:1], nil }, 0, 0, []string{"verify finds no lost record"}},
		"it is in the ledger, and not reported": {true, func(a *account) { a.turns, a.reports = a.turns[:1], nil }, 0, 1, []string{"no worker has reported it"}},
		"another record is reported":            {true, func(a *account) { a.turns, a.reports = a.turns[:1], []report{reported("b", 7, 6)} }, 0, 1, []string{"no worker has reported it"}},
		"a lease that was over is lost": {true, func(a *account) {
			a.turns = a.turns[:1]
			a.records, a.findings = ledger(tokenOfC, upTo)
		}, 0, 1, nil},
		"a store that keeps records is said to have lost one": {false, func(a *account) { a.turns, a.findings = a.turns[:1], nil }, 0, 0, []string{"on a store that keeps"}},
		"it has another history only":                         {false, func(a *account) { a.turns, a.findings, a.reports = a.turns[:1], nil, []report{reported("b", 0, 6)} }, 0, 0, nil},
		"even that is reported too early": {true, func(a *account) {
			a.turns, a.findings, a.reports = a.turns[:1], nil, []report{reported("b", 0, 4)}
		}, 0, 0, []string{"before the failover"}},

		"a later lease has the same token": {false, inTurn(tokenOfB), 0, 0, []string{"the later token isn't higher"}},
		"a later lease has a lower token":  {false, inTurn(tokenOfB - 1), 0, 0, []string{"the later token isn't higher"}},
		"a later lease has a higher token": {false, inTurn(tokenOfB + 1), 0, 0, nil},
		"a token comes again after a loss": {true, inTurn(tokenOfB), 0, 0, nil},

		"a worker overlaps with itself": {true, func(a *account) { a.turns = []*turn{b, worked("b", tokenOfC, 6, 8)} }, 1, 1, []string{"one worker has one lease at a time"}},
		"and that with one token":       {true, func(a *account) { a.turns = []*turn{b, worked("b", tokenOfB, 6, 8)} }, 1, 1, []string{"one worker has one lease at a time"}},
		"verify finds another fault": {true, func(a *account) {
			a.findings = append(only(verify.RecordsLost), append(only(verify.BesideLost), verify.Finding{Code: verify.KeyOutOfOrder, Severity: verify.Fault, Seq: 9, Text: "odd"})...)
		}, 1, 1, []string{"verify finds " + string(verify.KeyOutOfOrder) + " in record 9: odd"}},
		"verify warns of something": {true, func(a *account) {
			a.turns, a.reports, a.findings = a.turns[:1], nil, []verify.Finding{{Code: verify.MissedSlots, Severity: verify.Warning}}
		}, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := account{loses: of.loses, failing: recordtest.Minutes(5), turns: []*turn{b, c}, reports: told, findings: found, records: records}
			of.change(&a)
			v := a.judge()
			got := append(v.wrong, v.untold...)
			if v.overlaps != of.overlaps || v.lost != of.lost {
				t.Errorf("judge() counts %d overlaps and %d lost, want %d and %d", v.overlaps, v.lost, of.overlaps, of.lost)
			}
			if len(got) != len(of.want) {
				t.Fatalf("judge() complains:\n%s\nwant %d complaints: %q", strings.Join(got, "\n"), len(of.want), of.want)
			}
			for i, part := range of.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("judge() complains: %s\nwant %q", got[i], part)
				}
			}
		})
	}
}

// What may yet be told is waited for; what must not be is final.
func TestOnlyWhatIsUntoldIsWaitedFor(t *testing.T) {
	pair := []*turn{worked("b", tokenOfB, 4, 7), worked("c", tokenOfC, 6, 8)}
	for _, loses := range []bool{false, true} {
		v := account{loses: loses, failing: recordtest.Minutes(5), turns: pair}.judge()
		if wrong, untold := len(v.wrong) > 0, len(v.untold) > 0; wrong == loses || untold != loses {
			t.Errorf("judge() with loses=%v = %+v, want all of one sort", loses, v)
		}
	}
}
