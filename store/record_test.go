package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/slotlease/slotlease/internal/fuzzed" // properties draw from the seed of the run
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestRecordCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *store.Record)
		want   string // Part of the error; empty if the record is valid.
	}{
		{"a grant", func(*store.Record) {}, ""},
		{"a release with an empty window", func(r *store.Record) { r.Kind, r.WindowEnd = store.KindRelease, r.WindowStart }, ""},
		{"a done with an empty window", func(r *store.Record) {
			r.Kind, r.WindowStart, r.DoneUntil = store.KindDone, r.WindowEnd, r.SlotEnd
		}, ""},
		{"a DoneUntil in the far future", func(r *store.Record) { r.DoneUntil = r.DoneUntil.AddDate(500, 0, 0) }, ""},
		{"the largest attempt", func(r *store.Record) { r.Attempt = store.MaxAttempt }, ""},
		{"a negative attempt", func(r *store.Record) { r.Attempt = -1 }, "attempt -1: must be 0 … 1000000"},
		{"an attempt that is too large", func(r *store.Record) { r.Attempt = store.MaxAttempt + 1 }, "attempt 1000001"},
		{"all attempts spared", func(r *store.Record) { r.Attempt, r.Spared = 3, 3 }, ""},
		{"a negative number of attempts spared", func(r *store.Record) { r.Spared = -1 }, "spared -1: must be 0 … attempt"},
		{"more attempts spared than there were", func(r *store.Record) { r.Attempt, r.Spared = 3, 4 }, "spared 4: must be 0 … attempt, which is 3"},
		{"orders", func(r *store.Record) {
			r.Orders = `[{"kind":"pause","at":"2026-03-02T00:00:00.000Z","until":"2026-03-02T02:00:00.000Z"}]`
		}, ""},
		{"orders that are none", func(r *store.Record) { r.Orders = "pause" }, "orders: invalid character"},
		{"a done slot", func(r *store.Record) {
			r.Done = store.Done{Start: r.SlotStart, End: r.SlotEnd, Zone: "America/Vancouver", Offset: -7 * time.Hour}.String()
		}, ""},
		{"a done slot without an end", func(r *store.Record) { r.Done = `{"start":"2026-03-02T00:00:00.000Z"}` }, `done: "": must be a time`},
		{"a done slot that ends before it starts", func(r *store.Record) {
			r.Done = store.Done{Start: r.SlotEnd, End: r.SlotStart}.String()
		}, "must end after it starts"},
		{"a done slot that is none", func(r *store.Record) { r.Done = "yesterday" }, "done: invalid character"},
		{"an unknown kind", func(r *store.Record) { r.Kind, r.WindowEnd = "pause", r.WindowStart }, ""},
		{"the optional fields empty", func(r *store.Record) {
			r.Group, r.Schedule, r.Metadata, r.Worker = "", "", "", store.Worker{}
			r.SlotStart, r.SlotEnd, r.FixedAt, r.ReadAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
			r.DoneUntil, r.Attempt = time.Time{}, 0
		}, ""},
		{"a window in the far future", func(r *store.Record) { r.WindowEnd = r.WindowEnd.AddDate(500, 0, 0) }, ""},
		{"the first time of all", func(r *store.Record) {
			r.ReadAt, r.WindowStart = time.Time{}.Add(time.Millisecond), time.Time{}.Add(time.Millisecond)
		}, ""},
		{"the last time of all", func(r *store.Record) {
			r.WindowEnd = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
			r.ReadAt = r.WindowEnd
		}, ""},
		{"a read in the year 10000", func(r *store.Record) { r.ReadAt = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }, "readAt 10000-01-01T00:00:00.000Z: must be in the years 1 to 9999"},
		{"a read before the year 1", func(r *store.Record) { r.ReadAt = time.Time{}.Add(-1) }, "readAt 0000-12-31T23:59:59.999Z: must be"},
		{"a read in the year 10000 of UTC", func(r *store.Record) {
			r.ReadAt = time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("west", -3600))
		}, "readAt 10000-01-01T00:00:00.000Z"},
		{"a read in the last hour of UTC", func(r *store.Record) {
			r.ReadAt = time.Date(10_000, 1, 1, 0, 30, 0, 0, time.FixedZone("east", 3600))
		}, ""},
		{"a window of which Unix milliseconds overflow", func(r *store.Record) { r.WindowEnd = time.Unix(1<<55, 0) }, "windowEnd 1141709097-"},
		{"a window of 1 ms, less 1 ns", func(r *store.Record) { r.WindowEnd = r.WindowStart.Add(time.Millisecond - 1) }, "must not be empty"},
		{"a window that starts at what is stored as no time", func(r *store.Record) { r.WindowStart = time.Time{}.Add(1) }, "must have a start"},
		{"a slot in the year 10000", func(r *store.Record) { r.SlotEnd = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }, "slotEnd 10000-01-01T00:00:00.000Z: must be"},
		{"work done up to the year 10000", func(r *store.Record) { r.DoneUntil = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) }, "doneUntil 10000-01-01"},
		{"a claim of before the year 1", func(r *store.Record) { r.FixedAt = time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC) }, "fixedAt -0005-01-01"},
		{"the largest metadata", func(r *store.Record) { r.Metadata = strings.Repeat("m", store.MaxMetadata) }, ""},
		{"the largest seq", func(r *store.Record) { r.Seq = store.MaxSeq }, ""},
		{"a bad worker type", func(r *store.Record) { r.WorkerType = "a/b" }, `character '/'`},
		{"seq 0", func(r *store.Record) { r.Seq = 0 }, "seq 0"},
		{"a seq that isn't followed", func(r *store.Record) { r.Seq = store.MaxSeq + 1 }, "seq 9007199254740991"},
		{"no kind", func(r *store.Record) { r.Kind = "" }, "kind"},
		{"a long kind", func(r *store.Record) { r.Kind = store.Kind(strings.Repeat("k", 33)) }, "kind"},
		{"no claim", func(r *store.Record) { r.Claim = "" }, "claim"},
		{"a long claim", func(r *store.Record) { r.Claim = strings.Repeat("c", 65) }, "claim"},
		{"no instance id", func(r *store.Record) { r.InstanceID = "" }, "instanceId"},
		{"a long instance id", func(r *store.Record) { r.InstanceID = strings.Repeat("i", 257) }, "instanceId: 257 bytes"},
		{"a long group", func(r *store.Record) { r.Group = strings.Repeat("g", 257) }, "group: 257 bytes"},
		{"a long schedule", func(r *store.Record) { r.Schedule = strings.Repeat("s", 513) }, "schedule: 513 bytes"},
		{"large metadata", func(r *store.Record) { r.Metadata = strings.Repeat("m", store.MaxMetadata+1) }, "metadata: 8193 bytes"},
		{"NUL in metadata", func(r *store.Record) { r.Metadata = "ab\x00" }, "metadata: NUL at byte 2"},
		{"NUL in the group", func(r *store.Record) { r.Group = "\x00" }, "group: NUL at byte 0"},
		{"NUL in the kind", func(r *store.Record) { r.Kind = "a\x00" }, "kind: NUL at byte 1"},
		{"NUL in the claim", func(r *store.Record) { r.Claim = "a\x00" }, "claim: NUL at byte 1"},
		{"a claim that isn't UTF-8", func(r *store.Record) { r.Claim = "a\xff" }, "claim: must be UTF-8"},
		{"metadata that isn't UTF-8", func(r *store.Record) { r.Metadata = "a\xc0\x80" }, "metadata: must be UTF-8"},
		{"token 0", func(r *store.Record) { r.Token = 0 }, "token 0"},
		{"no window", func(r *store.Record) { r.WindowStart = time.Time{} }, "window"},
		{"an empty grant", func(r *store.Record) { r.WindowEnd = r.WindowStart }, "must not be empty"},
		{"a window that ends before it starts", func(r *store.Record) { r.WindowEnd = r.WindowStart.Add(-1) }, "ends before it starts"},
		{"a defect", func(r *store.Record) { r.Defect = "claim: must be a string" }, "claim: must be a string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := storetest.Grant("job", 1)
			c.change(&r)
			err := r.Check()
			switch {
			case c.want == "" && err != nil:
				t.Errorf("Check() = %v, want nil", err)
			case c.want == "":
			case !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), c.want):
				t.Errorf("Check() = %v, want ErrInvalid with %q", err, c.want)
			case len(err.Error()) > 700:
				t.Errorf("Check(): error of %d bytes, want values not to be echoed whole", len(err.Error()))
			}
			envelope := r.CheckEnvelope()
			if isInformation := strings.HasPrefix(c.want, "schedule:") || strings.HasPrefix(c.want, "metadata:") || strings.HasPrefix(c.want, "attempt") || strings.HasPrefix(c.want, "spared") || strings.HasPrefix(c.want, "orders") || c.want != "" && r.Done != "" ||
				strings.HasPrefix(c.want, "slotEnd") || strings.HasPrefix(c.want, "doneUntil") || strings.HasPrefix(c.want, "fixedAt"); isInformation {
				if envelope != nil {
					t.Errorf("CheckEnvelope() = %v, want nil: that is information", envelope)
				}
				clean := r.Cleaned()
				if clean.Check() != nil || clean.Claim != r.Claim || clean.Spared == r.Spared && clean.Orders == r.Orders && clean.Done == r.Done && clean.Schedule != "" && clean.Metadata != "" && clean.Attempt != 0 && !clean.SlotEnd.IsZero() && !clean.DoneUntil.IsZero() && !clean.FixedAt.IsZero() {
					t.Errorf("Cleaned() = %.200s, want the unfit field empty and the rest kept", fmt.Sprintf("%+v", clean))
				}
				return
			}
			if fmt.Sprint(envelope) != fmt.Sprint(err) {
				t.Errorf("CheckEnvelope() = %v, want %v as of Check", envelope, err)
			}
			if got := r.Cleaned(); got != r {
				t.Errorf("Cleaned() = %+v, want it unchanged, %+v", got, r)
			}
		})
	}
}

func TestRecordCheckTellsAllProblemsAtOnce(t *testing.T) {
	err := store.Record{}.Check()
	for _, want := range []string{"worker type", "seq", "kind", "claim", "instanceId", "token", "window"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Record{}.Check() = %v, want it to name %s", err, want)
		}
	}
}

func TestCleanedKeepsTheEnvelopeAndWhatIsFit(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	r := storetest.Grant("job", 1)
	r.InstanceID, r.Group, r.Claim, r.Kind = long, "\xff", "a\x00", store.Kind(long)
	r.WindowEnd, r.ReadAt = r.WindowEnd.AddDate(20_000, 0, 0), r.ReadAt.AddDate(-20_000, 0, 0)
	r.Worker = store.Worker{Host: strings.Repeat("h", 1<<10), PID: 7, Version: strings.Repeat("v", 1<<10)}
	r.Metadata, r.Schedule = strings.Repeat("m", store.MaxMetadata), strings.Repeat("s", 512)
	r.Attempt = store.MaxAttempt
	if got := r.Cleaned(); got != r {
		t.Errorf("Cleaned() of an odd envelope = %.300s, want it unchanged", fmt.Sprintf("%+v", got))
	}
	want := r
	want.Worker, want.Metadata, want.Schedule = store.Worker{PID: 7}, "", ""
	want.SlotStart, want.SlotEnd, want.FixedAt = time.Time{}, time.Time{}, time.Time{}
	want.DoneUntil, want.Attempt = time.Time{}, 0
	r.Worker.Host, r.Worker.Version = r.Worker.Host+"h", "\xff"
	r.Metadata, r.Schedule = r.Metadata+"m", r.Schedule+"s"
	r.SlotStart, r.SlotEnd, r.FixedAt = r.SlotStart.AddDate(20_000, 0, 0), r.SlotEnd.AddDate(-20_000, 0, 0), store.FromMillis(1<<63-1)
	r.DoneUntil, r.Attempt, r.Orders, r.Done = r.DoneUntil.AddDate(-20_000, 0, 0), r.Attempt+1, "[]", "{}"
	if got := r.Cleaned(); got != want {
		t.Errorf("Cleaned() of unfit information = %.300s, want it empty", fmt.Sprintf("%+v", got))
	}
}

func TestKeysAreOrderedAsTheirSeqsAndDifferByType(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workerType := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,62}`)
		seq := rapid.Int64Range(1, store.MaxSeq+9)
		one, other := workerType.Draw(t, "one"), workerType.Draw(t, "other")
		a, b := seq.Draw(t, "a"), seq.Draw(t, "b")
		if x, y := store.Key(one, a), store.Key(one, b); (a < b) != (x < y) || (a == b) != (x == y) {
			t.Fatalf("Key(%d) = %s, Key(%d) = %s, want them in the order of Seq", a, x, b, y)
		}
		if one != other && store.Key(one, a) == store.Key(other, b) {
			t.Fatalf("Key(%s, %d) = Key(%s, %d) = %s, want them to differ", one, a, other, b, store.Key(one, a))
		}
	})
}

func TestThrottledErrorMatches(t *testing.T) {
	cause := errors.New("request rate is large")
	err := fmt.Errorf("cosmos: append: %w", &store.ThrottledError{RetryAfter: 2 * time.Second, Err: cause})
	if !errors.Is(err, store.ErrThrottled) || !errors.Is(err, cause) || errors.Is(err, store.ErrConflict) {
		t.Errorf("%v: want it to match ErrThrottled and its cause, and nothing else", err)
	}
	if e, ok := errors.AsType[*store.ThrottledError](err); !ok || e.RetryAfter != 2*time.Second {
		t.Errorf("AsType(%v) = %v, want RetryAfter 2s", err, e)
	}
	if want := "retry after 2s"; !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want it to contain %q", err, want)
	}
	if bare := (&store.ThrottledError{}); !errors.Is(bare, store.ErrThrottled) {
		t.Errorf("a ThrottledError without a cause doesn't match ErrThrottled")
	}
}

func TestFormatIsUTCInMilliseconds(t *testing.T) {
	at := time.Date(2026, time.March, 2, 1, 2, 3, 4_999_999, time.FixedZone("x", 3600))
	if got, want := store.Format(at), "2026-03-02T00:02:03.004Z"; got != want {
		t.Errorf("Format(%v) = %s, want %s", at, got, want)
	}
	if got, want := store.Format(store.FromMillis(0)), "1970-01-01T00:00:00.000Z"; got != want {
		t.Errorf("Format(FromMillis(0)) = %s, want %s", got, want)
	}
}
