package sqlite

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// again encodes and decodes a record.
func again(t *testing.T) func(r store.Record) store.Record {
	return func(r store.Record) store.Record { return decode(rowOf(t, r)) }
}

// FuzzDecode reads rows of arbitrary values. A byte of the choice says what a
// column holds: a value of the record, or something else.
func FuzzDecode(f *testing.F) {
	keep := make([]byte, len(columns))
	f.Add(keep, "grant", int64(7), 1.5, []byte("x"))
	f.Add([]byte{0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5}, `{"host":"h","pid":1}`, int64(-1<<63), -1e-300, []byte{})
	f.Add([]byte{0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, strings.Repeat("\x00\xff", 99), int64(1<<63-1), 1e300, []byte(nil))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 4, 3, 3, 3, 3, 3, 0, 3, 3, 2, 2}, strings.Repeat("m", 9000), int64(253402300799999), 0.0, []byte{0})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 7, 0, 6, 0, 0, 6, 6}, "", int64(1), 0.5, []byte("2026"))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4}, "2026", int64(7), 1.5, []byte(nil))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3}, "", int64(store.MaxAttempt+1), 0.0, []byte(nil))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 6}, "", int64(-19), 0.0, []byte(nil))
	f.Fuzz(func(t *testing.T, choice []byte, text string, integer int64, fraction float64, blob []byte) {
		row := rowOf(t, storetest.Grant("job", 7))
		for i := 2; i < min(len(choice), len(row)); i++ {
			switch choice[i] % 8 {
			case 1:
				row[i] = nil
			case 2:
				row[i] = text
			case 3:
				row[i] = integer
			case 4:
				row[i] = fraction
			case 5:
				row[i] = blob
			case 6:
				row[i] = integer + int64(i)
			case 7:
				row[i] = -int64(i) // as the query shows a text that is too long
			}
		}
		r := decode(row)
		documenttest.Sound(t, r, again(t))
		// A defect is what the envelope lacks, and nothing else is one.
		sound := true
		for i, c := range columns {
			_, isText := row[i].(string)
			ms, isInteger := row[i].(int64)
			isTime := isInteger && ms >= -62135596800000 && ms <= 253402300799999 // the years 1 to 9999
			switch c.name {
			case "kind", "instanceId", "claim":
				sound = sound && isText
			case "token":
				sound = sound && isInteger
			case "windowStart", "windowEnd":
				sound = sound && isTime
			case "group":
				sound = sound && (isText || row[i] == nil)
			case "readAt":
				sound = sound && (isTime || row[i] == nil)
			}
		}
		if (r.Defect == "") != sound {
			t.Errorf("decode(%v) = Defect %q, want one: %v", row, r.Defect, !sound)
		}
		if r.Defect != "" && r.CheckEnvelope() == nil {
			t.Errorf("CheckEnvelope() of a defect = nil")
		}
	})
}

// FuzzWorkerColumn reads the one column that holds JSON.
func FuzzWorkerColumn(f *testing.F) {
	for _, text := range []string{
		"", "null", "me", "[1]", "{}", `{"host":"h","pid":42,"version":"v1"}`, `{"host":"h","host":"i"}`, `{"pid":1e3}`, `{"pid": "x"}`, `{"host":`, `{"pid":9223372036854775808}`,
		`{"HOST":"h"}`, `{"host":"\ud800"}`, `{"host":"\u0000"}`, "{\"host\":\"\xff\"}", `{"host":` + strings.Repeat("[", 100), `{"version":"` + strings.Repeat("v", 1025) + `"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := storetest.Grant("job", 7)
		row := rowOf(t, want)
		row[column("worker")] = text
		got := decode(row)
		w := got.Worker
		if len(w.Host) > 1<<10 || len(w.Version) > 1<<10 || !utf8.ValidString(w.Host+w.Version) {
			t.Errorf("decode() with worker %q = %+v, want short texts of UTF-8", text, w)
		}
		if !json.Valid([]byte(text)) && w != (store.Worker{}) {
			t.Errorf("decode() with worker %q = %+v, want nothing of what is no JSON", text, w)
		}
		want.Worker = w
		if got != want {
			t.Errorf("decode() with worker %q = %+v, want all the rest, %+v", text, got, want)
		}
		documenttest.Sound(t, got, again(t))
	})
}
