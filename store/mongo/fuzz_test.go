package mongo

import (
	"math"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// again encodes and decodes a record.
func again(t *testing.T) func(r store.Record) store.Record {
	return func(r store.Record) store.Record { return decode("job", 7, marshalled(t, r, nil)) }
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(marshalled(f, storetest.Grant("job", 7), nil)))
	f.Add([]byte(marshalled(f, storetest.Grant("job", 7), bson.M{"token": 5.0, "worker": bson.D{{Key: "pid", Value: "x"}}})))
	f.Add([]byte(marshalled(f, storetest.Grant("job", 7), bson.M{"windowEnd": nil})))
	f.Add([]byte(marshalled(f, storetest.Grant("job", 7), bson.M{"seq": int32(7), "priority": math.NaN(), "schedule": bson.Symbol("x"), "slotStart": bson.DateTime(math.MinInt64)})))
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) { documenttest.Sound(t, decode("job", 7, b), again(t)) })
}

// FuzzField puts an arbitrary value into one field of a sound document: broken
// ones by themselves hardly ever get past the first check.
func FuzzField(f *testing.F) {
	grant := encode(storetest.Grant("job", 7))
	add := func(field uint8, value any, twice bool) {
		kind, data, err := bson.MarshalValue(value)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(field, byte(kind), data, twice)
	}
	for i, e := range grant {
		add(uint8(i), e.Value, i%5 == 0)
	}
	add(2, 7.0, false)
	add(14, math.Inf(1), false)
	add(14, bson.NewDecimal128(0, 5), false)
	add(8, bson.DateTime(math.MaxInt64), false)
	add(17, strings.Repeat("m", store.MaxMetadata+1), false)
	add(16, bson.D{{Key: "host", Value: int32(1)}, {Key: "pid", Value: 0.5}, {Key: "version", Value: bson.A{"v"}}}, false)
	add(18, bson.DateTime(math.MaxInt64), false)
	add(18, int64(1_700_000_000_000), false)
	add(19, int32(-1), false)
	add(19, int64(store.MaxAttempt+1), false)
	add(5, bson.D{{Key: "$gt", Value: ""}}, false)
	f.Fuzz(func(t *testing.T, field, kind byte, data []byte, twice bool) {
		var fields bson.D
		at := int(field) % len(grant)
		for i, e := range grant {
			if i != at || twice {
				fields = append(fields, e)
			}
		}
		whole, err := bson.Marshal(fields)
		must(t, "Marshal()", err)
		// The element goes in front of the closing zero.
		raw := append(append(append([]byte{}, whole[:len(whole)-1]...), kind), grant[at].Key+"\x00"...)
		raw = append(append(raw, data...), 0)
		for i := range 4 {
			raw[i] = byte(len(raw) >> (8 * i))
		}
		got := decode("job", 7, raw)
		documenttest.Sound(t, got, again(t))
		if got.Defect != "" && bson.Raw(raw).Validate() == nil {
			if !documenttest.InEnvelope(got.Defect) {
				// The data may have been more than one field.
				if list, err := bson.Raw(raw).Elements(); err != nil || len(list) <= len(fields)+1 {
					t.Errorf("decode() with %s of type %#x %x: Defect %q, want none of what is for information", grant[at].Key, kind, data, got.Defect)
				}
			}
		}
	})
}

func FuzzURINeverPanicsNorLeaks(f *testing.F) {
	for i, uri := range []string{
		"mongodb://u:p@h/d?collection=c", "mongodb+srv://h", "mongodb://[::1]:1,%2Fx/?a=b", "mongodb://@", "mongodb://h:/?=;&",
		"mongodb://h/?Collection=x&COLLECTION=y", "mongodb://h/d?tls=true;w=1", "mongodb://h?x=@", "mongodb://%zz@h",
	} {
		for j, password := range []string{"", "s3cret", "p%40ss", "p@ss/w:rd?#", "x@h/", "%zz", "a=b&c=d", "p\"\\\x00\xff", "a,b:c"} {
			f.Add(uri, password, byte(8*i+j))
			f.Add(uri, password, byte(8*i+j+128))
		}
	}
	f.Add("mongodb://h", "x@h/", byte(144))
	f.Add("mongodb://h", "\xfc%40ss", byte(0))
	f.Fuzz(func(t *testing.T, uri, password string, shape byte) {
		if a, err := parseURI(uri); err == nil && !strings.HasPrefix(a.driver, scheme) && !strings.HasPrefix(a.driver, schemeSRV) {
			t.Errorf("parseURI(%q) = driver %q, want a MongoDB URI", uri, a.driver)
		}
		const canary = "c4naryS3cretc4nary"
		_, rest, _ := strings.Cut(uri, "://")
		p := canary + password
		// What follows a ? or & isn't of the secret any more.
		if shape&128 != 0 && shape%8 < 5 && !strings.ContainsAny(password, "?&;") {
			p = password + canary
		}
		switch shape / 8 % 3 {
		case 1:
			p = url.PathEscape(p)
		case 2:
			p = url.QueryEscape(p)
		}
		shapes := []string{
			scheme + "u:" + p + "@h/d",
			schemeSRV + "u:" + p + "@" + rest,
			scheme + "h/d?tlsCertificateKeyFilePassword=" + p,
			scheme + "h/d?authMechanismProperties=AWS_SESSION_TOKEN:" + p + "&" + rest,
			scheme + "h/d?" + rest + "&proxyPassword=" + p,
			// In these the secret is where none can be.
			scheme + "h&proxyPassword=" + p,
			scheme + "h/d&proxyPassword=" + p,
			"postgres://u:" + p + "@h",
		}
		whole, inPlace := shapes[shape%8], shape%8 < 5
		if shown := Redact(whole); strings.Contains(shown, canary) {
			t.Fatalf("Redact(%q) = %q, want no secret", whole, shown)
		}
		a, err := parseURI(whole)
		if err != nil {
			if strings.Contains(err.Error(), canary) {
				t.Fatalf("parseURI(%q) = %v, want no secret", whole, err)
			}
			return
		}
		// What the driver, which gets all of it, may say.
		said := a.driver + ": " + strconv.Quote(a.driver)
		if inPlace {
			said += p + ": " + strconv.Quote(p)
		}
		if text := a.secrets.Scrub(said); strings.Contains(text, canary) {
			t.Fatalf("Scrub() with the secrets of %q = %q, want no secret", whole, text)
		}
	})
}
