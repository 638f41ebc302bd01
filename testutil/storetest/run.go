package storetest

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// patience bounds each operation of the suite: a store that takes longer counts as
// hanging.
const patience = 60 * time.Second

// wall is the suite's own clock. It is real time, or a bubble's when Run is
// called inside a testing/synctest bubble.
var wall = clock.New()

// Run checks a store against the contract of [store.Ledger]. Each case calls
// open for its own harness. Most cases run in parallel with others of their group, so
// open must be safe for concurrent use. The store's clock must run at the rate of real
// time.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	root := t.Name()
	for _, g := range []struct {
		name        string
		initialised bool
		serial      bool
		cases       []testCase
	}{
		{"append", true, false, appendCases},
		{"append after", true, false, followCases},
		{"round trip", true, false, roundTripCases},
		{"tail", true, false, tailCases},
		{"page", true, false, pageCases},
		{"trim", true, false, trimCases},
		{"hostile names", true, false, nameCases},
		{"planted documents", true, false, documentCases},
		{"hostile names from outside", true, false, outsideCases},
		{"readers", true, false, readerCases},
		{"two paths", true, false, pathCases},
		{"foreign constraints", true, false, constraintCases},
		{"before init", false, false, emptyCases},
		{"lifecycle", true, false, lifecycleCases},
		{"context", true, false, contextCases},
		{"watch", true, false, watchCases},
		{"roster before init", false, false, rosterEmptyCases},
		{"roster", true, false, rosterCases},
		{"attendance", true, false, attendanceCases},
		{"time", true, true, timeCases},
		{"race", true, true, raceCases},
	} {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) {
					if !g.serial {
						t.Parallel()
					}
					h := open(t)
					h.check(t)
					b := &bench{Harness: h, says: announcement{root, h.Skips}}
					b.says.heed(t)
					b.begin(t, g.initialised)
					c.run(t, b)
				})
			}
		})
	}
}

// testCase is one sentence of the contract.
type testCase struct {
	name string
	run  func(t *testing.T, b *bench)
}

// bench is the harness of a case and its first handle.
type bench struct {
	Harness
	store.Ledger
	says announcement
}

// check ends the test if the harness can't be used.
func (h Harness) check(t *testing.T) {
	t.Helper()
	if h.Open == nil || h.Plant == nil {
		t.Fatal("the harness has no Open or no Plant: both are required")
	}
	if h.MaxDocument != 0 && h.MaxDocument < leastDocument {
		t.Fatalf("the harness has a MaxDocument of %d, want 0 or at least %d", h.MaxDocument, leastDocument)
	}
	for name, why := range h.Skips {
		if why == "" {
			t.Fatalf("the harness doesn't say why it skips %q", name)
		}
	}
}

// begin opens the first handle, of data that is initialised or is not.
func (b *bench) begin(t *testing.T, initialised bool) {
	t.Helper()
	if b.InitFirst != nil {
		b.InitFirst(t)
	}
	b.Ledger = b.handle(t)
	if initialised && b.InitFirst == nil {
		if err := b.Init(within(t)); err != nil {
			t.Fatalf("Init() = %v, want nil", err)
		}
	}
}

// handle returns one more handle.
func (b *bench) handle(t *testing.T) store.Ledger {
	t.Helper()
	l := b.Open(t)
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	return l
}

// within is the context of one operation.
func within(t *testing.T) context.Context {
	t.Helper()
	return lasting(t, patience)
}

// lasting is the context of many operations.
func lasting(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// add appends records that must be accepted.
func add(t *testing.T, l store.Ledger, records ...store.Record) {
	t.Helper()
	for _, r := range records {
		if err := l.Append(within(t), r); err != nil {
			t.Fatalf("Append(%s) = %v, want nil: the key is free", store.Key(r.WorkerType, r.Seq), err)
		}
	}
}

// addRange appends the grants first … last of a worker type.
func addRange(t *testing.T, l store.Ledger, workerType string, first, last int64) {
	t.Helper()
	for seq := first; seq <= last; seq++ {
		add(t, l, Grant(workerType, seq))
	}
}

// get returns a record that must be there.
func get(t *testing.T, l store.Ledger, workerType string, seq int64) store.Record {
	t.Helper()
	r, err := l.Get(within(t), workerType, seq)
	if err != nil {
		t.Fatalf("Get(%.100q, %d) = %v, want a record", workerType, seq, err)
	}
	return r
}

// absent demands that Get doesn't find a key.
func absent(t *testing.T, l store.Ledger, workerType string, seq int64) {
	t.Helper()
	r, err := l.Get(within(t), workerType, seq)
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get(%.100q, %d) = %+v, %v, want ErrNotFound", workerType, seq, r, err)
	}
}

// tail returns the newest records, which must be readable.
func tail(t *testing.T, l store.Ledger, workerType string, limit int) []store.Record {
	t.Helper()
	records, _, err := l.Tail(within(t), workerType, limit)
	if err != nil {
		t.Fatalf("Tail(%.100q, %d) = %v, want nil", workerType, limit, err)
	}
	return records
}

// wantSeqs compares the Seqs of records.
func wantSeqs(t *testing.T, what string, records []store.Record, want ...int64) {
	t.Helper()
	var got []int64
	for _, r := range records {
		got = append(got, r.Seq)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s = Seqs %d, want %d", what, got, want)
	}
}

// trim returns how many records went.
func trim(t *testing.T, l store.Ledger, workerType string, before int64) int {
	t.Helper()
	n, err := l.Trim(within(t), workerType, before)
	if err != nil {
		t.Fatalf("Trim(%.100q, %d) = %d, %v, want nil", workerType, before, n, err)
	}
	return n
}

// wantTrim trims and compares how many records went.
func wantTrim(t *testing.T, l store.Ledger, workerType string, before int64, want int) {
	t.Helper()
	if got := trim(t, l, workerType, before); got != want {
		t.Errorf("Trim(%q, %d) = %d, want %d", workerType, before, got, want)
	}
}

// announcement is what the harness of a suite says of skips. root is the name of the test that called the suite.
type announcement struct {
	root  string
	skips map[string]string
}

// heed fails a test of the suite at its end if it was skipped and the harness doesn't say why.
func (a announcement) heed(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Skipped() {
			return
		}
		name := strings.TrimPrefix(t.Name(), a.root+"/")
		if why := a.whySkipped(name); why != "" {
			t.Logf("as the harness says: %s", why)
			return
		}
		t.Errorf("skipped, which the harness doesn't announce: its Skips must say why for %q", name)
	})
}

// whySkipped is why the harness says that a test is skipped; empty if it doesn't say so.
func (a announcement) whySkipped(name string) string {
	for pattern, why := range a.skips {
		// In the names of tests, spaces are underscores.
		text := strings.ReplaceAll(regexp.QuoteMeta(strings.ReplaceAll(pattern, " ", "_")), `\*`, ".*")
		if regexp.MustCompile("^" + text + "(/.*)?$").MatchString(name) {
			return why
		}
	}
	return ""
}

// part runs a part of a case.
func (b *bench) part(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		b.says.heed(t)
		f(t)
	})
}
