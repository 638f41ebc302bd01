package cosmos

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// again encodes and decodes a record.
func again(t *testing.T) func(r store.Record) store.Record {
	return func(r store.Record) store.Record {
		raw, err := encode(r)
		must(t, "encode()", err)
		return decode("job", 7, raw)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(item(f, storetest.Grant("job", 7), nil))
	f.Add(item(f, storetest.Grant("job", 7), map[string]string{"token": "5.0", "worker": `{"pid":"x"}`}))
	f.Add(item(f, storetest.Grant("job", 7), map[string]string{"windowEnd": "null", "claim": `"\ud83e\uddab"`}))
	f.Add(item(f, storetest.Grant("job", 7), map[string]string{"seq": "7e0", "priority": "1e400", "slotStart": `"0000"`}))
	f.Add([]byte("{}"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) { documenttest.Sound(t, decode("job", 7, raw), again(t)) })
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
		got := decode("job", 7, whole)
		documenttest.Sound(t, got, again(t))
		if got.Defect != "" && json.Valid([]byte(value)) {
			if !documenttest.InEnvelope(got.Defect) {
				t.Errorf("decode() with %s %s: Defect %q, want none of what is for information", name, value, got.Defect)
			}
		}
	})
}

func FuzzURINeverPanicsNorLeaks(f *testing.F) {
	for i, uri := range []string{
		"cosmos://acct/d/c?throughput=400", "cosmos://[::1]:1/?insecureHTTP=true", "cosmos://h.example:1", "cosmos://", "cosmos://a?=&;",
		"cosmos://%zz", "cosmos://a/b?serverless=1&autoscale=2", "mongodb://a",
	} {
		for j, key := range []string{"", "s3cret+/", "x@h/", "%zz", "a=b&c=d", "p\"\\\x00\xff", "a;b"} {
			f.Add(uri, key, byte(8*i+j))
		}
	}
	f.Fuzz(func(t *testing.T, uri, key string, shape byte) {
		if a, err := parseURI(uri); err == nil {
			u, err := url.Parse(a.endpoint)
			if err != nil || u.Host != a.host || u.Path != "/" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && a.loopback()) {
				t.Errorf("parseURI(%q) = endpoint %q of host %q, want a URL of https, or of http to a loopback address", uri, a.endpoint, a.host)
			}
		}
		// A key is base64 of 64 bytes, and so ends in ==.
		const canary = "c4naryS3cretc4nary"
		key = canary + key + "=="
		if shape&128 != 0 {
			key = url.QueryEscape(key)
		}
		shapes := []string{
			scheme + key + "@acct/d",
			scheme + "u:" + key + "@acct/d",
			scheme + key,
			scheme + "acct/" + key,
			scheme + "acct/d/" + key,
			scheme + "acct?" + key,
			scheme + "acct?AccountKey=" + key,
			"https://" + key + "@acct",
		}
		whole := shapes[shape%8]
		if shown := Redact(whole); strings.Contains(shown, canary) {
			t.Fatalf("Redact(%q) = %q, want no secret", whole, shown)
		}
		if _, err := parseURI(whole); err != nil && strings.Contains(err.Error(), canary) {
			t.Fatalf("parseURI(%q) = %v, want no secret", whole, err)
		}
	})
}

func FuzzConnectionStringNeverPanicsNorLeaks(f *testing.F) {
	for i, text := range []string{
		"AccountEndpoint=https://acct.documents.azure.com:443/;AccountKey=c2VjcmV0;", "AccountEndpoint=http://[::1]:8081/;AccountKey=x==",
		"DisableServerCertificateValidation=True;AccountEndpoint=https://localhost:1", ";;=;", "AccountEndpoint=://%zz",
	} {
		for j, key := range []string{"", "s3cret+/==", "a;b", "x=y", "@h/"} {
			f.Add(text, key, byte(5*i+j))
		}
	}
	f.Fuzz(func(t *testing.T, text, key string, shape byte) {
		const canary = "c4naryS3cretc4nary"
		key = canary + key
		for _, whole := range []string{text, []string{
			text + key, key + text, "AccountKey=" + key + ";" + text, text + ";AccountKey=" + key,
			"AccountEndpoint=https://" + key + "/;AccountKey=x", "AccountEndpoint=https://u:" + key + "@h/;AccountKey=x",
			key + "=" + text, "DisableServerCertificateValidation=" + key,
		}[shape%8]} {
			a, got, err := parseConnectionString(whole)
			if err != nil {
				if strings.Contains(err.Error(), canary) {
					t.Fatalf("parseConnectionString(%q) = %v, want no secret", whole, err)
				}
				continue
			}
			if u, err := url.Parse(a.endpoint); err != nil || u.Host != a.host || got == "" || a.emulated() && !a.loopback() {
				t.Errorf("parseConnectionString(%q) = %+v, key %q, want an endpoint and a key", whole, a, got)
			}
		}
	})
}
