package cosmos

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func throttled(ms string) *fakeReply {
	headers := []string{headerSubstatus, "3200"}
	if ms != "" {
		headers = append(headers, headerRetryAfter, ms)
	}
	return refusal(http.StatusTooManyRequests, "Request rate is large", headers...)
}

func TestThrottledAppendWaitsAsLongAsItIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		answers []*fakeReply
		want    time.Duration
	}{
		{"once", []*fakeReply{throttled("34")}, 34 * time.Millisecond},
		{"twice", []*fakeReply{throttled("34"), throttled("1200")}, 1234 * time.Millisecond},
		{"in parts of a millisecond", []*fakeReply{throttled("0.5")}, 500 * time.Microsecond},
		{"in seconds, as other servers say it", []*fakeReply{refusal(429, "", "Retry-After", "2")}, 2 * time.Second},
		{"unnamed", []*fakeReply{throttled(""), throttled("")}, 300 * time.Millisecond},
		{"nonsense", []*fakeReply{throttled("NaN"), throttled("-5")}, 300 * time.Millisecond},
		{"449", slices.Repeat([]*fakeReply{refusal(449, "retry with")}, 3), 70 * time.Millisecond},
	} {
		t.Run(c.name, bubbled(func(t *testing.T, f *fakeAccount) {
			f.hook = answering("create", c.answers...)
			began := time.Now()
			wantErr(t, "Append()", f.open(t, Options{}).Append(within(t, 5*time.Second), storetest.Grant("job", 1)), nil)
			documenttest.Equal(t, "the time of Append()", time.Since(began), c.want)
		}))
	}
}

func TestThrottlingBeyondTheDeadlineIsToldAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.hook = answering("create", throttled("34"), throttled("60000"))
		began := time.Now()
		err := f.open(t, Options{}).Append(within(t, 5*time.Second), storetest.Grant("job", 1))
		wantSentinel(t, "Append()", err, store.ErrThrottled)
		if e, ok := errors.AsType[*store.ThrottledError](err); !ok || e.RetryAfter != time.Minute {
			t.Errorf("Append() = %v, want a ThrottledError with a wait of 1m0s", err)
		}
		documenttest.Equal(t, "the time of Append()", time.Since(began), 34*time.Millisecond)
	})
}

func TestEndlessThrottlingEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply *fakeReply
		want  error
	}{
		"429": {throttled("10"), store.ErrThrottled},
		"449": {refusal(449, "retry with"), nil},
	} {
		t.Run(name, bubbled(func(t *testing.T, f *fakeAccount) {
			f.hook = always("create", c.reply)
			err := f.open(t, Options{}).Append(t.Context(), storetest.Grant("job", 1))
			wantSentinel(t, "Append() without a deadline", err, c.want)
			documenttest.Equal(t, "creates sent", f.ops("create"), maxTries)
		}))
	}
}

func TestWaitOfAThrottledOperationEndsWithTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.hook = always("query", throttled("60000"))
		l := f.open(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, _, err := l.Tail(ctx, "job", 1)
		if took := time.Since(began); took != time.Second || !errors.Is(err, context.Canceled) {
			t.Errorf("Tail() = %v after %v, want context.Canceled after 1s", err, took)
		}
	})
}

func TestThrottlingOfAnyRequestIsWaitedOut(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"account", "container", "query", "delete"} {
		t.Run(op, bubbled(func(t *testing.T, f *fakeAccount) {
			for seq := range int64(40) {
				f.plant(t, "job", store.Key("job", seq+1), nil)
			}
			f.hook = answering(op, throttled("500"))
			began := time.Now()
			n, err := f.open(t, Options{}).Trim(within(t, time.Minute), "job", store.MaxSeq)
			if err != nil || n != 39 {
				t.Errorf("Trim() = %d, %v, want 39: also what was deleted before it was throttled", n, err)
			}
			documenttest.Equal(t, "the time of Trim()", time.Since(began), 500*time.Millisecond)
		}))
	}
}

func TestEachOperationIsOneRequestAndItsChargeIsOnTheReceipt(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		f.hook = answering("create", refusal(429, "", headerRetryAfter, "10", headerCharge, "0.38"), refusal(429, "", headerRetryAfter, "10", headerCharge, "nonsense"))
		l := f.open(t, Options{})
		for _, c := range []struct {
			name string
			call func(ctx context.Context) error
			want float64
			sent int
		}{
			// The first operation pays for the look at the container.
			{"Append", func(ctx context.Context) error { return l.Append(ctx, storetest.Grant("job", 1)) }, 1 + 0.38 + 5.52, 5},
			{"Append of a taken key", func(ctx context.Context) error { _ = l.Append(ctx, storetest.Grant("job", 1)); return nil }, 5.52, 1},
			{"Get", func(ctx context.Context) error { _, err := l.Get(ctx, "job", 1); return err }, 1, 1},
			{"Tail", func(ctx context.Context) error { _, _, err := l.Tail(ctx, "job", 3); return err }, 2.85, 1},
			{"Tail of nothing", func(ctx context.Context) error { _, _, err := l.Tail(ctx, "nobody", 3); return err }, 2.85, 1},
			{"Now", func(ctx context.Context) error { _, err := l.Now(ctx); return err }, 2.85, 1},
			{"Append", func(ctx context.Context) error { return l.Append(ctx, storetest.Grant("job", 2)) }, 5.52, 1},
			{"Trim", func(ctx context.Context) error { _, err := l.Trim(ctx, "job", 2); return err }, 2*2.85 + 5.52, 3},
			{"WorkerTypes", func(ctx context.Context) error { _, err := l.WorkerTypes(ctx); return err }, 2 * 2.85, 2},
		} {
			ctx, receipt := store.WithReceipt(within(t, time.Minute))
			before := len(f.log)
			wantErr(t, c.name, c.call(ctx), nil)
			documenttest.Equal(t, "requests sent by "+c.name, len(f.log)-before, c.sent)
			if got := receipt.Units(); got < c.want-1e-9 || got > c.want+1e-9 {
				t.Errorf("%s was charged %v request units, want %v", c.name, got, c.want)
			}
		}
	})
}
