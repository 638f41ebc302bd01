package app

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/verification"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// fault is a ledger in which one record, mostly, breaks a rule.
type fault struct {
	name    string
	records []store.Record // oldest first
	code    verify.Code
	seq     int64
}

// with is a record that something is changed of.
func with(r store.Record, change func(r *store.Record)) store.Record {
	change(&r)
	return r
}

// faults are those that a whole ledger shows, each planted in a ledger that is sound otherwise.
func faults(now time.Time) []fault {
	minutes, grant, part, release, done := recordtest.Minutes, recordtest.Grant, recordtest.Part, recordtest.Release, recordtest.Done
	a, b, c, d := grant(1, 0, "a"), grant(2, 1, "b"), grant(3, 2, "c"), grant(4, 3, "d")
	young := func(seq int64, n int) store.Record {
		r := grant(seq, n, "y")
		at := now.Truncate(5 * time.Minute).Add(time.Duration(n-4) * 5 * time.Minute)
		return with(r, func(r *store.Record) {
			r.SlotStart, r.SlotEnd, r.WindowStart, r.WindowEnd = at, at.Add(5*time.Minute), at, at.Add(5*time.Minute)
			r.Claim, r.Token, r.FixedAt, r.ReadAt = fmt.Sprint("young", n), at.UnixMilli(), at.Add(-9*time.Second), at.Add(-8*time.Second)
		})
	}
	reset := func(seq int64, at float64) store.Record {
		return with(part(seq, a, at, at), func(r *store.Record) {
			r.Kind, r.Claim, r.Token, r.FixedAt, r.ReadAt = store.KindReset, "reset", max(minutes(at).UnixMilli(), c.Token+1), minutes(at), minutes(at)
		})
	}
	note := func(of store.Record, seq int64, change func(r *store.Record)) store.Record {
		r := part(seq, of, 0, 0)
		r.Kind, r.WindowStart, r.WindowEnd = "outcome", of.WindowEnd, of.WindowEnd
		change(&r)
		return r
	}
	return []fault{
		{"a window that overlaps the one below", []store.Record{a, b, part(3, c, 9, 15), d}, verify.OverlappingWindow, 3},
		{"a token that is not above the one below", []store.Record{a, b, with(c, func(r *store.Record) { r.Token = b.Token }), d}, verify.TokenNotAbove, 3},
		{"an extension with another token", []store.Record{a, recordtest.NextSlot(2, with(a, func(r *store.Record) { r.Token++ }), 1, 5, 10), c}, verify.TokenOfExtension, 2},
		{"an extension that leaves a gap", []store.Record{part(1, a, 0, 2), part(2, a, 3, 5), with(b, func(r *store.Record) { r.Seq = 3 })}, verify.GapInTerm, 2},
		{"an extension of a term that was released", []store.Record{a, release(a, 2, minutes(2)), part(3, a, 2, 5), with(b, func(r *store.Record) { r.Seq = 4 })}, verify.ExtensionReleased, 3},
		{"a claim that is used again", []store.Record{a, b, with(c, func(r *store.Record) { r.Claim = a.Claim }), d}, verify.ClaimReused, 3},
		{"a release of another term", []store.Record{a, b, release(a, 3, minutes(6)), d}, verify.ReleaseOfOther, 3},
		{"a release with a window", []store.Record{a, with(release(a, 2, minutes(2)), func(r *store.Record) { r.WindowEnd = minutes(3) }), c}, verify.ReleaseMisplaced, 2},
		{"a release before its term", []store.Record{a, release(a, 2, minutes(-1)), c}, verify.ReleaseMisplaced, 2},
		{"a done record that changes the token", []store.Record{a, with(done(a, 2, minutes(5), minutes(1)), func(r *store.Record) { r.Token++ }), c}, verify.ChangesTerm, 2},
		{"bookkeeping that changes the claim", []store.Record{a, note(a, 2, func(r *store.Record) { r.Claim = "another" }), c}, verify.ChangesTerm, 2},
		{"bookkeeping that moves the end of the window", []store.Record{a, note(a, 2, func(r *store.Record) { r.WindowStart, r.WindowEnd = minutes(4), minutes(4) }), c}, verify.ChangesTerm, 2},
		{"bookkeeping that grants a window", []store.Record{a, note(a, 2, func(r *store.Record) { r.WindowEnd = minutes(9) }), c}, verify.ChangesTerm, 2},
		{"bookkeeping that changes the holder", []store.Record{a, note(a, 2, func(r *store.Record) { r.InstanceID = "another" }), c}, verify.ChangesHolder, 2},
		{"an override with the claim of what it ends", []store.Record{a, with(a, func(r *store.Record) {
			r.Seq, r.Kind, r.WindowEnd, r.Token = 2, store.KindOverride, r.WindowStart, r.Token+1
		}), c}, verify.OverrideMisplaced, 2},
		{"a window that starts in a year", []store.Record{a, with(b, func(r *store.Record) { r.WindowStart, r.WindowEnd = now.AddDate(1, 0, 0), now.AddDate(1, 0, 1) })}, verify.WindowAhead, 2},
		{"a window of two years", []store.Record{a, with(b, func(r *store.Record) { r.WindowEnd = r.WindowStart.AddDate(2, 0, 0) })}, verify.WindowTooLong, 2},
		{"a token of next year", []store.Record{a, with(b, func(r *store.Record) { r.Token = now.AddDate(1, 0, 0).UnixMilli() })}, verify.TokenAhead, 2},
		{"a reset of what can be obeyed", []store.Record{a, b, reset(3, 20), with(grant(4, 5, "d"), func(*store.Record) {})}, verify.ResetOfSound, 3},
		{"a reset that comes too early", []store.Record{a, with(b, func(r *store.Record) { r.WindowEnd = r.WindowStart.AddDate(2, 0, 0) }), with(reset(3, 5.1), func(r *store.Record) { r.ReadAt = minutes(1) }), d}, verify.ResetTooEarly, 3},
		{"keys that are missing", []store.Record{young(1, 0), young(3, 2), young(4, 3)}, verify.GapInKeys, 3},
		{"a ledger that was trimmed too much", []store.Record{grant(7, 0, "a"), grant(8, 1, "b")}, verify.KeptTooFew, 7},
		{"a ledger that was trimmed too soon", []store.Record{young(7, 0), young(8, 1)}, verify.TrimmedTooYoung, 7},
		{"what was done and is no more", []store.Record{with(a, func(r *store.Record) { r.DoneUntil = minutes(0) }), b}, verify.DoneGoesBack, 2},
		{"a slot that is granted again when it is done", []store.Record{
			with(part(1, a, 0, 2), func(r *store.Record) { r.Attempt = 1 }),
			with(done(part(1, a, 0, 2), 2, minutes(5), minutes(1)), func(r *store.Record) { r.Attempt = 1 }),
			with(part(3, a, 3, 5), func(r *store.Record) {
				r.Claim, r.Token, r.Attempt, r.DoneUntil = "again", minutes(3).UnixMilli(), 2, minutes(5)
			}),
		}, verify.GrantAfterDone, 3},
	}
}

// plantFaults appends each ledger under its own worker type: the store takes what any program writes.
func plantFaults(t *testing.T, l store.Ledger) map[string]fault {
	t.Helper()
	planted := map[string]fault{}
	for i, f := range faults(storeTime(t, l)) {
		name := fmt.Sprintf("fault-%02d", i)
		for _, r := range f.records {
			r.WorkerType = name
			if err := l.Append(t.Context(), r); err != nil {
				t.Fatalf("%s: %v", f.name, err)
			}
		}
		planted[name] = f
	}
	return planted
}

// verified is what leasectl verify finds, as JSON.
func verified(t *testing.T, env []string, code int, args ...string) (r verification.Result) {
	t.Helper()
	got := leasectl(t, env, append([]string{"verify", "--output", "json"}, args...)...)
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil || got.code != code {
		t.Fatalf("leasectl verify %q = %+v, %v, want JSON and the exit code %d", args, got, err, code)
	}
	return r
}

func TestVerifyFindsEachPlantedFaultOnEachStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, l store.Ledger, _ string, env []string) {
		planted := plantFaults(t, l)
		r := verified(t, env, exit.Unsound)
		if r.Sound || len(r.Ledgers) != len(planted) || r.Faults < len(planted) {
			t.Fatalf("leasectl verify found %d faults in %d ledgers, want some in each of %d", r.Faults, len(r.Ledgers), len(planted))
		}
		for _, x := range r.Ledgers {
			f := planted[x.WorkerType]
			t.Run(f.name, func(t *testing.T) {
				is := func(found verification.Finding) bool {
					return found.Code == string(f.code) && found.Seq == f.seq && found.Severity == string(verify.Fault) && found.Remedy != ""
				}
				if !slices.ContainsFunc(x.Findings, is) || x.Sound {
					t.Errorf("leasectl verify found %+v, want the fault %s of record %d", x.Findings, f.code, f.seq)
				}
				for _, found := range x.Findings {
					if found.Severity == string(verify.Fault) && found.Code != string(f.code) && f.code != verify.TrimmedTooYoung {
						t.Errorf("leasectl verify found %+v besides", found)
					}
				}
			})
		}
		if strings.HasPrefix(env[0], "LEASECTL_STORE=cosmos") && (r.Units == nil || r.Units.ByOperation["page"] == 0) {
			t.Errorf("requestUnits = %+v, want those of pages", r.Units)
		}
	})
}

func TestVerifyOfASoundLedgerSucceedsAndWarningsFailWithStrict(t *testing.T) {
	t.Parallel()
	l, uri := newLedger(t)
	env := []string{"LEASECTL_STORE=" + uri}
	if got := leasectl(t, env, "verify"); got.code != exit.OK || got.stdout != "no records\n" || got.stderr != "" {
		t.Errorf("leasectl verify of an empty store = %+v", got)
	}
	if got := leasectl(t, env, "verify", "--worker-type", "export"); got.code != exit.OK || got.stdout != "export: there are no records to check\n" || got.stderr != "" {
		t.Errorf("leasectl verify of a type without records = %+v, want that nothing was checked", got)
	}
	for seq := int64(1); seq <= 3; seq++ {
		must(t, l.Append(t.Context(), recordtest.Grant(seq, int(seq), "a")))
	}
	// Nobody has claimed a slot since.
	got := leasectl(t, env, "verify", "--worker-type", "export")
	if got.code != exit.OK || !strings.HasPrefix(got.stdout, "export: sound, 1 warning, in 3 records (1 to 3) of 3 terms\n  warning: missed-slots: record 3: ") {
		t.Errorf("leasectl verify = %+v, want a sound ledger with a warning", got)
	}
	got = leasectl(t, env, "verify", "--strict")
	if got.code != exit.Unsound || !strings.Contains(got.stderr, "found 1 warning, and --strict is given") {
		t.Errorf("leasectl verify --strict = %+v, want the exit code %d", got, exit.Unsound)
	}
	if r := verified(t, env, exit.OK); !r.Sound || r.Warnings != 1 || r.Ledgers[0].Records != 3 || r.Ledgers[0].Counts["missed-slots"] != 1 || r.Ledgers[0].Missed < 10_000 || r.Ledgers[0].MissedMore {
		t.Errorf("leasectl verify = %+v, want one warning, of missed slots", r)
	}
	if got := leasectl(t, env, "verify", "--worker-type", "exprot"); got.code != exit.Usage || !strings.Contains(got.stderr, "try: --worker-type export") {
		t.Errorf("leasectl verify of no type = %+v", got)
	}
}

// What no store takes from a program that uses it rightly, in a file that another one has written.
func TestVerifyFindsWhatOtherProgramsWroteIntoTheFile(t *testing.T) {
	t.Parallel()
	l, uri := newLedger(t)
	env := []string{"LEASECTL_STORE=" + uri}
	for _, name := range []string{"export", "Export"} {
		for seq := int64(1); seq <= 4; seq++ {
			r := recordtest.Grant(seq, int(seq), "a")
			if r.WorkerType = name; name == "Export" && seq > 1 {
				break
			}
			must(t, l.Append(t.Context(), r))
		}
	}
	db, err := sql.Open("sqlite", strings.TrimPrefix(uri, "sqlite:"))
	must(t, err)
	defer func() { _ = db.Close() }()
	for _, statement := range []string{
		"UPDATE WorkerLeases SET claim = NULL WHERE workerType = 'export' AND seq = 2",
		"INSERT INTO WorkerLeases (workerType, seq, kind) VALUES ('export', -7, 'grant'), ('export', 9, 'grant')",
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	r := verified(t, env, exit.Unsound)
	if len(r.Findings) != 1 || r.Findings[0].Code != string(verify.TypesDifferByCase) {
		t.Errorf("leasectl verify found %+v about the names, want those that differ by case", r.Findings)
	}
	var got []string
	for _, f := range r.Ledgers[1].Findings {
		got = append(got, fmt.Sprint(f.Severity, " ", f.Code, " ", f.Seq))
	}
	want := []string{"warning unreachable-key 0", "fault unreadable-record 2", "warning missed-slots 3", "warning missed-slots 4", "warning above-free-key 9"}
	if !slices.Equal(got, want) {
		t.Errorf("leasectl verify found %q, want %q", got, want)
	}
}
