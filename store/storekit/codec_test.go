package storekit

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// document is the stored form of a record, with some fields replaced by raw JSON, or
// removed if that is empty.
func item(t testing.TB, r store.Record, change map[string]string) []byte {
	t.Helper()
	raw, err := Encode(r)
	must(t, "Encode()", err)
	var fields map[string]json.RawMessage
	must(t, "Unmarshal()", json.Unmarshal(raw, &fields))
	parts := []string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		v := fields[name]
		if text, changed := change[name]; changed {
			v = json.RawMessage(text)
		}
		if len(v) > 0 {
			parts = append(parts, `"`+name+`":`+string(v))
		}
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}

func TestStoredItemIsAsDocumented(t *testing.T) {
	t.Parallel()
	r := store.Record{
		WorkerType: "job", Seq: 7, Kind: store.KindGrant, InstanceID: "host-1", Claim: "c1", Priority: 2,
		WindowStart: store.FromMillis(1_700_000_000_000).Add(999 * time.Microsecond), WindowEnd: store.FromMillis(1_700_000_300_007),
		Token: 1_700_000_000_000, Schedule: "every 5m0s", Worker: store.Worker{Host: "h", PID: 42, Version: "v1"}, Metadata: "m",
	}
	want := `{"id":"job:00000000000000000007","workerType":"job","seq":7,"kind":"grant","instanceId":"host-1","group":"","claim":"c1","priority":2,` +
		`"windowStart":"2023-11-14T22:13:20.000Z","windowEnd":"2023-11-14T22:18:20.007Z","token":1700000000000,"schedule":"every 5m0s",` +
		`"worker":{"host":"h","pid":42,"version":"v1"},"metadata":"m"}`
	got, err := Encode(r)
	if err != nil || string(got) != want {
		t.Errorf("Encode() = %s, %v\nwant %s", got, err, want)
	}
	r.DoneUntil, r.Attempt = r.WindowStart, 3
	want = want[:len(want)-1] + `,"doneUntil":"2023-11-14T22:13:20.000Z","attempt":3}`
	if got, err = Encode(r); err != nil || string(got) != want {
		t.Errorf("Encode() of a job that is run once per slot = %s, %v\nwant %s", got, err, want)
	}
}

func TestTokensThatADoubleDoesNotHoldComeBackExactly(t *testing.T) {
	t.Parallel()
	for _, token := range []int64{1, maxExact - 1, maxExact, maxExact + 1, 1<<60 + 1, math.MaxInt64} {
		r := storetest.Grant("job", 7)
		r.Token = token
		raw := item(t, r, nil)
		documenttest.Equal(t, fmt.Sprintf("Decode(Encode(token %d))", token), Decode("job", 7, raw), r)
		// As a server does that reads all numbers as doubles.
		var through map[string]any
		must(t, "Unmarshal()", json.Unmarshal(raw, &through))
		raw, err := json.Marshal(through)
		must(t, "Marshal()", err)
		documenttest.Equal(t, fmt.Sprintf("Decode() of token %d after a server with doubles", token), Decode("job", 7, raw), r)
	}
}

func TestAnOddWorkerSpoilsNoRecord(t *testing.T) {
	t.Parallel()
	documenttest.OddWorker(t, again(t))
}

func TestDecodeReadsWhatOtherWritersMean(t *testing.T) {
	t.Parallel()
	want := storetest.Grant("job", 7)
	want.Token = 1200
	for _, change := range []map[string]string{
		{"token": "1200"},
		{"token": "1.2e3"},
		{"token": "1200.0", "seq": "7.0"},
		{"windowStart": `"` + want.WindowStart.In(time.FixedZone("", 3600)).Format(time.RFC3339) + `"`},
		{"claim": `"` + strings.ReplaceAll(want.Claim, want.Claim[:1], fmt.Sprintf(`\u%04x`, want.Claim[0])) + `"`},
		{"readAt": `"` + want.ReadAt.Format("2006-01-02T15:04:05.000000000Z07:00") + `"`},
	} {
		if change["token"] == "" {
			change["token"] = "1200"
		}
		documenttest.Equal(t, fmt.Sprintf("Decode() with %v", change), Decode("job", 7, item(t, want, change)), want)
	}
}

func TestDecodeRefusesWhatTwoReadersMayReadInTwoWays(t *testing.T) {
	t.Parallel()
	r := storetest.Grant("job", 7)
	for name, change := range map[string]map[string]string{
		"a token beyond doubles":            {"token": "9007199254740993"},
		"a token in text that a double has": {"token": `"5"`},
		"a token in odd text":               {"token": `"+9007199254740993"`},
		"a token that is a fraction":        {"token": "1.5"},
		"half a character":                  {"claim": `"\ud83e"`},
		"the other half":                    {"claim": `"x\udd2b"`},
		"halves in the wrong order":         {"claim": `"\udd2b\ud83e"`},
		"two first halves":                  {"claim": `"\ud83e\ud83e"`},
		"a first half and an escape":        {"claim": `"\ud83e\u0041"`},
		"bytes that are no UTF-8":           {"instanceId": "\"\xff\""},
		"microseconds":                      {"windowEnd": `"2026-03-02T00:10:00.0001Z"`},
		"no zone":                           {"windowEnd": `"2026-03-02T00:10:00.000"`},
		"a date":                            {"windowEnd": `"2026-03-02"`},
		"a time in ms":                      {"windowEnd": `1772409000000`},
		"a leap second":                     {"windowEnd": `"2016-12-31T23:59:60Z"`},
		"a year of five digits":             {"windowEnd": `"12026-03-02T00:10:00.000Z"`},
		"a year before the first":           {"windowEnd": `"0000-03-02T00:10:00.000Z"`},
	} {
		got := Decode("job", 7, item(t, r, change))
		if got.Defect == "" || got != (store.Record{WorkerType: "job", Seq: 7, Defect: got.Defect}) {
			t.Errorf("Decode() of %s = %+v, want a Defect and no more", name, got)
		}
	}
	if got := Decode("job", 7, item(t, r, map[string]string{"claim": `"\ud83e\uddab \\ud83e"`})); got.Defect != "" || got.Claim != "🦫 \\ud83e" {
		t.Errorf("Decode() of both halves = %+v, want the character, and a backslash for what it is", got)
	}
}

func TestDecodeRefusesFieldsGivenTwice(t *testing.T) {
	t.Parallel()
	r := storetest.Grant("job", 7)
	r.Metadata = "m"
	whole := item(t, r, nil)
	twice := func(field string) []byte {
		return append(append([]byte{}, whole[:len(whole)-1]...), (`,` + field + `}`)...)
	}
	for _, field := range []string{`"token":5`, `"claim":"other"`, `"windowEnd":null`, `"\u0063laim":"c"`, `"workerType":"job"`} {
		if got := Decode("job", 7, twice(field)); got.Defect == "" {
			t.Errorf("Decode() with %s once more = %+v, want a Defect", field, got)
		}
	}
	want := r
	want.Metadata = ""
	documenttest.Equal(t, "Decode() with two metadata", Decode("job", 7, twice(`"metadata":"other"`)), want)
}

func TestDecodeOfBrokenJSON(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "null", "5", "[]", "{", `{"a"`, `{"a":}`, `{"a":1,}`, `{"a":1} x`, `{"a":1}{}`, `{a:1}`, strings.Repeat("[", 20000), `{"a":` + strings.Repeat("[", 20000)} {
		if got := Decode("job", 7, []byte(raw)); got.Defect == "" || got.Seq != 7 {
			t.Errorf("Decode(%.30q) = %+v, want a Defect", raw, got)
		}
	}
}
