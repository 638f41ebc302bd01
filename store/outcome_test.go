package store_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/store"
)

var (
	slotStart = time.Date(2026, time.March, 2, 2, 0, 0, 0, time.UTC)
	exited3   = store.Outcome{
		Result: store.Failed, GivenUp: true, ExitCode: 3, Exited: true, Error: "exit status 3: <no disk>", InstanceID: "a", Attempt: 5,
		SlotStart: slotStart, SlotEnd: slotStart.Add(time.Hour), Begun: slotStart.Add(time.Millisecond), Ended: slotStart.Add(12 * time.Second),
	}
	least = store.Outcome{Result: store.Succeeded, SlotStart: slotStart, SlotEnd: slotStart.Add(time.Hour)}
)

// told is a record of a kind with Metadata.
func told(k store.Kind, metadata string) store.Record {
	return store.Record{Kind: k, Metadata: metadata}
}

func TestAnOutcomeIsCompactJSON(t *testing.T) {
	for want, o := range map[string]store.Outcome{
		`{"result":"failed","givenUp":true,"exitCode":3,"error":"exit status 3: <no disk>","instanceId":"a","attempt":5,` +
			`"slotStart":"2026-03-02T02:00:00.000Z","slotEnd":"2026-03-02T03:00:00.000Z","begun":"2026-03-02T02:00:00.001Z","ended":"2026-03-02T02:00:12.000Z"}`: exited3,
		`{"result":"succeeded","slotStart":"2026-03-02T02:00:00.000Z","slotEnd":"2026-03-02T03:00:00.000Z"}`: least,
	} {
		if got := o.Metadata(); got != want {
			t.Errorf("Metadata() = %s, want %s", got, want)
		}
		for _, kind := range []store.Kind{store.KindDone, store.KindRelease, store.KindOutcome} {
			if got, ok := told(kind, want).Outcome(); !ok || got != o {
				t.Errorf("Outcome() of %s = %+v, %v, want %+v", kind, got, ok, o)
			}
		}
	}
}

func TestAnOutcomeIsReadWhateverElseIsWritten(t *testing.T) {
	const slot = `"slotStart":"2026-03-02T02:00:00.000Z","slotEnd":"2026-03-02T03:00:00.000Z"`
	for _, c := range []struct {
		name, metadata string
		want           store.Outcome
	}{
		{"fields of a later version", `{"result":"succeeded",` + slot + `,"cpu":{"seconds":4}}`, least},
		{"no exit code", `{"result":"succeeded",` + slot + `,"exitCode":null}`, least},
		{"white space", " {\n\"result\":\"succeeded\"," + slot + "}\n", least},
		{"times of another zone, and finer ones", `{"result":"succeeded","slotStart":"2026-03-02T04:00:00.0009+02:00","slotEnd":"2026-03-02T03:00:00Z"}`, least},
		{"text", "backup of Monday", store.Outcome{}},
		{"nothing", "", store.Outcome{}},
		{"null", "null", store.Outcome{}},
		{"a list", `[{"result":"succeeded",` + slot + `}]`, store.Outcome{}},
		{"no result", `{` + slot + `}`, store.Outcome{}},
		{"a result to come", `{"result":"skipped",` + slot + `}`, store.Outcome{}},
		{"a success that was given up", `{"result":"succeeded","givenUp":true,` + slot + `}`, store.Outcome{}},
		{"no slot", `{"result":"failed"}`, store.Outcome{}},
		{"an empty slot", `{"result":"failed","slotStart":"2026-03-02T02:00:00Z","slotEnd":"2026-03-02T02:00:00Z"}`, store.Outcome{}},
		{"half a slot", `{"result":"failed","slotEnd":"2026-03-02T02:00:00Z"}`, store.Outcome{}},
		{"a time that is none", `{"result":"failed",` + slot + `,"begun":"at two"}`, store.Outcome{}},
		{"the year 10000 of UTC", `{"result":"failed",` + slot + `,"ended":"9999-12-31T23:59:59-01:00"}`, store.Outcome{}},
		{"a negative attempt", `{"result":"failed",` + slot + `,"attempt":-1}`, store.Outcome{}},
		{"too large an attempt", `{"result":"failed",` + slot + `,"attempt":1000001}`, store.Outcome{}},
		{"an exit code that is none", `{"result":"failed",` + slot + `,"exitCode":"3"}`, store.Outcome{}},
		{"a long label", `{"result":"failed",` + slot + `,"instanceId":"` + strings.Repeat("a", 257) + `"}`, store.Outcome{}},
		{"more than one", `{"result":"succeeded",` + slot + `}{}`, store.Outcome{}},
	} {
		got, ok := told(store.KindDone, c.metadata).Outcome()
		if !ok {
			got = store.Outcome{}
		}
		if want := c.want != (store.Outcome{}); ok != want || got != c.want {
			t.Errorf("%s: Outcome() = %+v, %v, want %+v, %v", c.name, got, ok, c.want, want)
		}
	}
	for _, kind := range []store.Kind{store.KindGrant, store.KindOverride, store.KindReset, "outcomes"} {
		if o, ok := told(kind, exited3.Metadata()).Outcome(); ok {
			t.Errorf("Outcome() of %s = %+v, want none: its Metadata is its user's", kind, o)
		}
	}
	if o, ok := (store.Record{Kind: store.KindDone, Metadata: exited3.Metadata(), Defect: "no token"}).Outcome(); ok {
		t.Errorf("Outcome() of what can't be decoded = %+v, want none", o)
	}
}

func TestAnOutcomeTakesTheBeginningOfAnyError(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"1 KiB", strings.Repeat("e", 1024), strings.Repeat("e", 1024)},
		{"more", strings.Repeat("e", 1025), strings.Repeat("e", 1024)},
		{"a rune across the end", strings.Repeat("e", 1022) + "€", strings.Repeat("e", 1022)},
		{"NUL and half a rune", "a\x00b\xe2\x82", "a\uFFFDb\uFFFD"},
		{"1 MiB that must be escaped", strings.Repeat("\x01", 1<<20), strings.Repeat("\x01", 1024)},
	} {
		o := exited3
		o.Error, o.InstanceID, o.ExitCode, o.Attempt = c.text, strings.Repeat("\x01", 256), -1<<31, store.MaxAttempt
		text := o.Metadata()
		got, ok := told(store.KindOutcome, text).Outcome()
		if !ok || got.Error != c.want || len(text) > store.MaxMetadata {
			t.Errorf("%s: Outcome().Error = %.20q… of %d bytes, %v; in %d bytes of Metadata; want %.20q… of %d", c.name, got.Error, len(got.Error), ok, len(text), c.want, len(c.want))
		}
	}
}

func TestAnOutcomeThatIsNoneHasNoMetadata(t *testing.T) {
	for name, change := range map[string]func(o *store.Outcome){
		"no result":          func(o *store.Outcome) { o.Result = "" },
		"given up, and done": func(o *store.Outcome) { o.Result = store.Succeeded },
		"no slot":            func(o *store.Outcome) { o.SlotStart, o.SlotEnd = time.Time{}, time.Time{} },
		"a slot of 1 µs":     func(o *store.Outcome) { o.SlotEnd = o.SlotStart.Add(time.Microsecond) },
		"the year 10000":     func(o *store.Outcome) { o.Ended = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"an attempt too far": func(o *store.Outcome) { o.Attempt = store.MaxAttempt + 1 },
		"NUL in a label":     func(o *store.Outcome) { o.InstanceID = "a\x00" },
	} {
		o := exited3
		if change(&o); o.Metadata() != "" {
			t.Errorf("%s: Metadata() = %s, want none", name, o.Metadata())
		}
	}
}

func TestHowLongWorkTook(t *testing.T) {
	if took, ok := exited3.Took(); took != 12*time.Second-time.Millisecond || !ok {
		t.Errorf("Took() = %v, %v, want 11.999s", took, ok)
	}
	back := exited3
	back.Ended = back.Begun.Add(-1)
	for _, o := range []store.Outcome{least, back} {
		if took, ok := o.Took(); took != 0 || ok {
			t.Errorf("Took() of %+v = %v, %v, want it unknown", o, took, ok)
		}
	}
}

// FuzzOutcome writes and reads outcomes of any fields, and reads any Metadata.
func FuzzOutcome(f *testing.F) {
	f.Add("failed", exited3.Error, "a", exited3.Metadata(), 3, 5, int64(1_772_416_800_000), int64(3_600_000), int64(12_000), byte(3))
	f.Add("succeeded", "", "", `{"result":"succeeded","slotStart":"2026-03-02T02:00:00Z","slotEnd":"2026-03-02T03:00:00Z","exitCode":-9223372036854775808}`, 0, 0, int64(0), int64(1), int64(0), byte(0))
	f.Add("failed", strings.Repeat("\x00\xff\u2028<", 400), strings.Repeat("\x01", 256), `{"error":"\u0000\ud800"}`, -1<<31, 1_000_000, int64(-62_135_596_800_000), int64(1), int64(-1), byte(2))
	f.Fuzz(func(t *testing.T, result, text, instance, metadata string, code, attempt int, start, length, took int64, how byte) {
		o := store.Outcome{
			Result: store.Result(result), GivenUp: how&1 != 0, Exited: how&2 != 0, Error: text, InstanceID: instance, Attempt: attempt,
			SlotStart: time.UnixMilli(start).UTC(), SlotEnd: time.UnixMilli(start + length).UTC(), Begun: time.UnixMilli(start).UTC(), Ended: time.UnixMilli(start + took).UTC(),
		}
		if o.Exited {
			o.ExitCode = code
		}
		if written := o.Metadata(); written != "" {
			wantOutcome(t, written)
			got, _ := told(store.KindDone, written).Outcome()
			if !strings.HasPrefix(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD"), got.Error) || len(text) <= 3 && text != "" && got.Error == "" {
				t.Fatalf("Metadata() made the error %q of %q, want its beginning", got.Error, text)
			}
			if got.Error = o.Error; got != o {
				t.Fatalf("Metadata() made %+v of %+v", got, o)
			}
		} else if o.Result == store.Failed && dated(o.SlotStart, o.SlotEnd, o.Begun, o.Ended) && !o.SlotStart.IsZero() && length > 0 && attempt >= 0 && attempt <= store.MaxAttempt && fits(instance, 0, 256) {
			t.Fatalf("Metadata() of %+v is empty, want it written", o)
		}
		if o, ok := told(store.KindRelease, metadata).Outcome(); ok {
			wantOutcome(t, o.Metadata())
			if again, ok := told(store.KindRelease, o.Metadata()).Outcome(); !ok || again != o {
				t.Fatalf("Outcome() of %q = %+v, and written again %+v", metadata, o, again)
			}
		}
	})
}

// wantOutcome demands that a text may be stored, and is a valid outcome.
func wantOutcome(t *testing.T, metadata string) {
	t.Helper()
	o, ok := told(store.KindDone, metadata).Outcome()
	if !ok || !fits(metadata, 1, store.MaxMetadata) || !fits(o.Error, 0, store.MaxError) || !utf8.ValidString(o.Error) {
		t.Fatalf("Outcome() of %q = %+v, %v; want it valid, and the text fit to be stored", metadata, o, ok)
	}
	if diff := cmp.Diff(o.SlotStart.UTC(), o.SlotStart); diff != "" {
		t.Fatalf("Outcome() is not in UTC: %s", diff)
	}
}
