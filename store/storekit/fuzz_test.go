package storekit

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// again encodes and decodes a record.
func again(t *testing.T) func(r store.Record) store.Record {
	return func(r store.Record) store.Record {
		raw, err := Encode(r)
		must(t, "Encode()", err)
		return Decode("job", 7, raw)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(item(f, storetest.Grant("job", 7), nil))
	f.Add(item(f, storetest.Grant("job", 7), map[string]string{"token": "5.0", "worker": `{"pid":"x"}`}))
	f.Add(item(f, storetest.Grant("job", 7), map[string]string{"windowEnd": "null", "claim": `"\ud83e\uddab"`}))
	f.Add(item(f, storetest.Grant("job", 7), map[string]string{"seq": "7e0", "priority": "1e400", "slotStart": `"0000"`}))
	f.Add([]byte("{}"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) { documenttest.Sound(t, Decode("job", 7, raw), again(t)) })
}

// FuzzField puts an arbitrary value into one field of a sound item: broken ones by
// themselves hardly ever get past the first check.
func FuzzField(f *testing.F) {
	names := []string{
		document.WorkerType, document.Seq, document.Kind, document.InstanceID, document.Group, document.Claim, document.Priority, document.SlotStart, document.SlotEnd,
		document.WindowStart, document.WindowEnd, document.Token, document.Schedule, document.FixedAt, document.ReadAt, document.Worker, document.Metadata,
		document.DoneUntil, document.Attempt,
	}
	values := []string{
		`null`, `5`, `-0`, `7.0`, `1e300`, `9007199254740993`, `"9007199254740993"`, `"2026-03-02T00:10:00.000Z"`, `"2026-03-02T00:10:00+25:00"`,
		`"\ud83e"`, `"x"`, `true`, `{"$gt":""}`, `{"host":5,"pid":0.5,"version":["v"]}`, `{"host":"h","host":"i"}`, `[]`, `""`, `-1`, `1000000`, `1000001`, `4294967301`,
	}
	for i := range names {
		for j, v := range values {
			f.Add(uint8(i), v, (i+j)%5 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, field uint8, value string, twice bool) {
		name := names[int(field)%len(names)]
		whole := item(t, storetest.Grant("job", 7), map[string]string{name: value})
		if twice {
			whole = item(t, storetest.Grant("job", 7), nil)
			whole = append(whole[:len(whole)-1], `,"`+name+`":`+value+`}`...)
		}
		got := Decode("job", 7, whole)
		documenttest.Sound(t, got, again(t))
		if got.Defect != "" && json.Valid([]byte(value)) {
			if !documenttest.InEnvelope(got.Defect) {
				t.Errorf("Decode() with %s %s: Defect %q, want none of what is for information", name, value, got.Defect)
			}
		}
	})
}

func FuzzParametersShowNothingButNames(f *testing.F) {
	for _, query := range []string{"", "serverSkew=1s", "serverSkew", "a=b&a=c", "endpoint=https://u:p@h", "=&=&", "endpoint=%zz", "insecureHTTP=true&endpoint=http://[::1]:1", "serverSkew=1s;x=y"} {
		f.Add(query, query, byte(len(query)))
	}
	f.Fuzz(func(t *testing.T, before, after string, shape byte) {
		const canary = "c4naryS3cret"
		query := before + []string{canary, "&" + canary, "=" + canary, "&endpoint=" + canary, "&serverSkew=" + canary, "&insecureHTTP=" + canary, canary + "=", "&endpoint=https://" + canary + "@"}[shape%8] + after
		errs := Parameters(query, []string{"endpoint", "serverSkew", "insecureHTTP"}, func(name, value string) (err error) {
			switch name {
			case "endpoint":
				_, err = Endpoint(value)
			case "serverSkew":
				_, err = SkewOf(value)
			case "insecureHTTP":
				_, err = Truth(value)
			}
			return err
		})
		for _, err := range errs {
			if text := err.Error(); strings.Contains(text, canary) || strings.ContainsAny(text, "\r\n\x00") {
				t.Fatalf("Parameters(%q) = %q, want no secret, in one line", query, text)
			}
		}
	})
}

func FuzzDecodePresence(f *testing.F) {
	p := storetest.Presence("job", "host-1")
	p.Labels, p.Offset = map[string]string{"zone": "a"}, time.Millisecond
	raw, err := EncodePresence(p)
	must(f, "EncodePresence()", err)
	f.Add(raw)
	f.Add([]byte(`{"id":"job:x","labels":[{"name":"a","value":"b"},{"name":"a","value":"c"}],"offset":1e300}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, ok := DecodePresence(raw)
		if !ok {
			return
		}
		if err := p.Check(); err != nil {
			t.Fatalf("DecodePresence(%q) = %+v, which is unfit: %v", raw, p, err)
		}
		all, err := EncodePresences([]store.Presence{p})
		must(t, "EncodePresences()", err)
		if again, ok := DecodePresence(all[0]); !ok || !reflect.DeepEqual(again, p) {
			t.Errorf("DecodePresence() of what was encoded = %+v, %v, want %+v", again, ok, p)
		}
	})
}
