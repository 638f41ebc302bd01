package cosmos

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

const fakeHost = "acct-westeurope.documents.azure.com:443"

// wantStamp demands a stamp that is honest in a bubble, whose clock stands still
// during an operation: the account's time is in what it claims.
func wantStamp(t *testing.T, what string, f *fakeAccount, got store.Stamp, granularity, maxAge time.Duration) {
	t.Helper()
	if got.Granularity != granularity || got.MaxAge != maxAge || got.Server != fakeHost || got.Skew != f.skew {
		t.Errorf("%s: stamp %+v, want granularity %v, max age %v, skew %v, server %s", what, got, granularity, maxAge, f.skew, fakeHost)
	}
	now := f.now()
	if got.Time.After(now) || !now.Before(got.Time.Add(granularity+maxAge)) || !got.Time.Equal(got.Time.Truncate(granularity)) || got.Time.Location() != time.UTC {
		t.Errorf("%s: stamp %+v at %v, want that time in it, cut to %v", what, got, now, granularity)
	}
}

func TestTimeIsSelectedAlongInMilliseconds(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.ahead = -90 * time.Second
		l := f.open(t, Options{})
		for i := range 5 {
			time.Sleep(1234567 * time.Microsecond)
			_, got, err := l.Tail(within(t, time.Second), "job", 3)
			if i == 0 {
				// An empty tail has no item to select the time along with.
				wantStamp(t, "Tail() of an empty ledger", f, got, time.Second, time.Second)
			} else {
				wantStamp(t, "Tail()", f, got, time.Millisecond, 0)
			}
			wantErr(t, "Tail()", err, nil)
			time.Sleep(777 * time.Millisecond)
			now, err := l.Now(within(t, time.Second))
			wantErr(t, "Now()", err, nil)
			wantStamp(t, "Now()", f, now, time.Millisecond, 0)

			time.Sleep(200 * time.Millisecond)
			ctx, receipt := store.WithReceipt(within(t, time.Second))
			must(t, "Append()", l.Append(ctx, storetest.Grant("job", int64(i+1))))
			wantStamp(t, "Append()", f, receipt.Stamp(), time.Second, time.Second)
		}
		documenttest.Equal(t, "queries (the time costs no request of its own)", f.ops("query"), 10)
	})
}

func TestServerThatDoesNotKnowTheTimeFunctionIsAskedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.timeless = true
		f.plant(t, "job", store.Key("job", 1), nil)
		l := f.open(t, Options{ServerSkew: 7 * time.Millisecond})
		for range 4 {
			time.Sleep(1234567 * time.Microsecond)
			records, got, err := l.Tail(within(t, time.Second), "job", 3)
			if err != nil || len(records) != 1 {
				t.Errorf("Tail() = %d records, %v, want 1", len(records), err)
			}
			wantStamp(t, "Tail()", f, got, time.Second, time.Second)
		}
		documenttest.Equal(t, "queries for 4 tails (one was refused)", f.ops("query"), 5)
		got, err := l.Now(within(t, time.Second))
		wantErr(t, "Now()", err, nil)
		wantStamp(t, "Now()", f, got, time.Second, time.Second)
		if n := f.ops("query"); n != 6 {
			t.Errorf("queries for one Now = %d, want 1: its refusal tells the time", n-5)
		}
	})
}

func TestNoTimeIsBetterThanAWrongOne(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]*fakeReply{
		"no date and a text":       reply(200, map[string]any{"Documents": []any{"soon"}}, "Date", "soon"),
		"no date and a fraction":   reply(200, map[string]any{"Documents": []any{1.5}}, "Date", "soon"),
		"no date and a negative":   reply(200, map[string]any{"Documents": []any{-5}}, "Date", "soon"),
		"no date and beyond 9999":  reply(200, map[string]any{"Documents": []any{1e300}}, "Date", "soon"),
		"no date and no documents": reply(200, map[string]any{"Documents": []any{}}, "Date", "soon"),
		"no date and a refusal":    reply(400, nil, "Date", "soon"),
		"a date that a cache kept": reply(200, map[string]any{"Documents": []any{}}, "Age", "60"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			f.hook = always("query", answer)
			got, err := f.open(t, Options{}).Now(within(t, time.Minute))
			wantSentinel(t, "Now()", err, nil)
			if !got.IsZero() {
				t.Errorf("Now() = %+v, want no stamp", got)
			}
		})
	}
}

func TestOddItemStampIsNotTold(t *testing.T) {
	t.Parallel()
	for _, content := range []any{nil, map[string]any{}, map[string]any{"_ts": "5"}, map[string]any{"_ts": 0}, map[string]any{"_ts": -5}, map[string]any{"_ts": 1e15}, map[string]any{"_ts": 5.5}} {
		f := newFake()
		f.hook = always("create", reply(201, content))
		ctx, receipt := store.WithReceipt(within(t, time.Minute))
		wantErr(t, fmt.Sprintf("Append() answered with %v", content), f.open(t, Options{}).Append(ctx, storetest.Grant("job", 1)), nil)
		if got := receipt.Stamp(); !got.IsZero() {
			t.Errorf("Append() answered with %v told %+v, want nothing", content, got)
		}
	}
}
