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
	if _, ok := store.As[store.Roster](l); !ok {
		t.Error("the roster is hidden")
	}
}

// plainLedger has no optional interfaces.
type plainLedger struct{ store.Ledger }

// described says of itself what a ledger with a poor clock says.
type described struct{ store.Ledger }

func (described) Describe() store.Description {
	return store.Description{FailoverFloor: time.Hour, Warning: func() string { return "full" }, Note: func() string { return "no clock" }}
}

func TestALedgerWithAClockElsewhereShowsWhatTheLedgerHas(t *testing.T) {
	t.Parallel()
	plain := WithClock(plainLedger{}, nil)
	if _, ok := store.As[store.Pager](plain); ok {
		t.Error("a Pager shows of a ledger without one")
	}
	if store.AsFollower(plain) != nil {
		t.Error("a Follower shows of a ledger that compares nothing")
	}
	if d := store.Describe(plain); d.Durability != nil || d.Warning() != "" || d.Note() != "" {
		t.Errorf("Describe() = %+v of a ledger that says nothing, want nothing", d)
	}
	if _, ok := store.As[store.Pager](WithClock(WithClock(memory.New(memory.Options{}), nil), nil)); !ok {
		t.Error("the Pager is hidden")
	}
	d := store.Describe(WithClock(described{}, nil))
	if d.FailoverFloor != 0 || d.Note() != "" || d.Warning() != "full" {
		t.Errorf("Describe() = a floor of %v, note %q, warning %q, want the warning alone: the others are of a clock that isn't used", d.FailoverFloor, d.Note(), d.Warning())
	}
	if store.AsFollower(WithClock(memory.New(memory.Options{}), nil)) == nil {
		t.Error("a Follower is hidden: workers would read before each extension")
	}
}
