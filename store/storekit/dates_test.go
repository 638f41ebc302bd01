package storekit

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestADateHeaderIsAStampOfASecond(t *testing.T) {
	t.Parallel()
	d := Dates{Skew: 250 * time.Millisecond, Server: "s3.example"}
	want := store.Stamp{Time: time.Date(2026, time.March, 2, 12, 0, 7, 0, time.UTC), Granularity: time.Second, MaxAge: time.Second, Skew: 250 * time.Millisecond, Server: "s3.example"}
	for _, c := range []struct {
		date, age string
		want      store.Stamp
	}{
		{"Mon, 02 Mar 2026 12:00:07 GMT", "", want},
		{"Mon, 02 Mar 2026 12:00:07 GMT", "0", want},
		{"Mon, 02 Mar 2026 12:00:07 GMT", "5", store.Stamp{}},
		{"yesterday", "", store.Stamp{}},
		{"", "", store.Stamp{}},
		{"Thu, 01 Jan 0001 00:00:00 GMT", "", store.Stamp{}},
	} {
		reply := &http.Response{Header: http.Header{}}
		reply.Header.Set("Date", c.date)
		if c.age != "" {
			reply.Header.Set("Age", c.age)
		}
		if got := d.Stamp(reply); got != c.want {
			t.Errorf("the stamp of Date %q, Age %q = %+v, want %+v", c.date, c.age, got, c.want)
		}
	}
	if got := d.Stamp(nil); !got.IsZero() {
		t.Errorf("the stamp of no reply = %+v, want none", got)
	}
	ctx, newest := Noting(t.Context())
	Note(ctx, want)
	Note(ctx, store.Stamp{})
	if got := newest(); got != want {
		t.Errorf("what was noted = %+v, want %+v", got, want)
	}
	Note(context.Background(), want)
}

func TestALedgerWithAClockElsewhereGivesItsTimeAlone(t *testing.T) {
	t.Parallel()
	at := store.Stamp{Time: store.FromMillis(1_700_000_000_000), Granularity: time.Millisecond, Server: "elsewhere"}
	failed := errors.New("no time")
	var err error
	l := WithClock(memory.New(memory.Options{}), func(context.Context) (store.Stamp, error) { return at, err })
	ctx, receipt := store.WithReceipt(t.Context())
	if err := l.Append(ctx, storetest.Grant("job", 1)); err != nil || !receipt.Stamp().IsZero() {
		t.Errorf("Append() = %v with the stamp %+v, want none", err, receipt.Stamp())
	}
	records, stamp, tailErr := l.Tail(t.Context(), "job", 9)
	if len(records) != 1 || !stamp.IsZero() || tailErr != nil {
		t.Errorf("Tail() = %+v, %+v, %v, want the record and no stamp", records, stamp, tailErr)
	}
	if got, err := l.Now(t.Context()); got != at || err != nil {
		t.Errorf("Now() = %+v, %v, want that of the clock", got, err)
	}
	err = failed
	if _, err := l.Now(t.Context()); !errors.Is(err, failed) {
		t.Errorf("Now() = %v, want the clock's error", err)
	}
	if _, ok := l.(store.Roster); !ok {
		t.Error("the roster is hidden")
	}
	if _, ok := l.(store.Watcher); ok {
		t.Error("a Watcher shows, whose hints nobody promised")
	}
}

// plainLedger has no optional interfaces.
type plainLedger struct{ store.Ledger }

type pagedLedger struct {
	store.Ledger
	store.Pager
}

type examinedLedger struct {
	store.Ledger
	store.Examiner
}

func TestALedgerWithAClockElsewhereShowsWhatTheLedgerHas(t *testing.T) {
	t.Parallel()
	for _, l := range []store.Ledger{
		plainLedger{},
		pagedLedger{},
		examinedLedger{},
		struct {
			pagedLedger
			store.Examiner
		}{},
		struct {
			plainLedger
			store.Roster
		}{},
		struct {
			pagedLedger
			store.Roster
		}{},
		struct {
			examinedLedger
			store.Roster
		}{},
		struct {
			pagedLedger
			store.Roster
			store.Examiner
		}{},
	} {
		shown := WithClock(l, nil)
		_, pages := l.(store.Pager)
		_, examines := l.(store.Examiner)
		_, attends := l.(store.Roster)
		_, stillPages := shown.(store.Pager)
		_, stillExamines := shown.(store.Examiner)
		_, stillAttends := shown.(store.Roster)
		if pages != stillPages || examines != stillExamines || attends != stillAttends {
			t.Errorf("of %T a Pager shows: %v, an Examiner: %v, a Roster: %v, want %v, %v and %v", l, stillPages, stillExamines, stillAttends, pages, examines, attends)
		}
	}
}
