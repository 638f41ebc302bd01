package cosmos

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

func TestParseURI(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]address{
		"cosmos://acct":                              {host: "acct.documents.azure.com:443"},
		"cosmos://acct/":                             {host: "acct.documents.azure.com:443"},
		"cosmos://acct/jobs/leases":                  {host: "acct.documents.azure.com:443", database: "jobs", container: "leases"},
		"cosmos://acct//leases":                      {host: "acct.documents.azure.com:443", container: "leases"},
		"cosmos://acct/a%2Fb":                        {host: "acct.documents.azure.com:443", database: "a/b"},
		"cosmos://acct.documents.azure.cn/jobs":      {host: "acct.documents.azure.cn:443", database: "jobs"},
		"cosmos://db.example.net:8443":               {host: "db.example.net:8443"},
		"cosmos://gateway:8443":                      {host: "gateway:8443"},
		"cosmos://[::1]:8081/?insecureHTTP=true":     {host: "[::1]:8081", plain: true},
		"cosmos://127.0.0.1:8081/?insecureHTTP=true": {host: "127.0.0.1:8081", plain: true},
		"cosmos://localhost:8081?insecureSkipVerify=true&insecureHTTP=false": {host: "localhost:8081", skipVerify: true},
		"cosmos://acct/?throughput=1000":                                     {host: "acct.documents.azure.com:443", offer: offer{manual: 1000}},
		"cosmos://acct?autoscale=4000&":                                      {host: "acct.documents.azure.com:443", offer: offer{autoscale: 4000}},
		"cosmos://acct?serverSkew=1.5s&unsafeUnverifiedAccount=true":         {host: "acct.documents.azure.com:443", skew: 1500 * time.Millisecond, unsafe: true},
		"cosmos://acct?serverless=true":                                      {host: "acct.documents.azure.com:443", offer: offer{serverless: true}},
	} {
		want.endpoint = map[bool]string{true: "http://", false: "https://"}[want.plain] + want.host + "/"
		if got, err := parseURI(uri); err != nil || got != want {
			t.Errorf("parseURI(%q) = %+v, %v, want %+v", uri, got, err, want)
		}
		documenttest.Equal(t, fmt.Sprintf("Redact(%q)", uri), Redact(uri), uri)
	}
}

func TestURIsThatAreRefused(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"":                                          "cosmos://",
		"mongodb://acct":                            "cosmos://",
		"cosmos://":                                 "account",
		"cosmos:///jobs":                            "account",
		"cosmos://a_b":                              "account",
		"cosmos://acct:":                            "account",
		"cosmos://acct:0":                           "port",
		"cosmos://acct:x":                           "port",
		"cosmos://[1]:443":                          "account",
		"cosmos://acct?throughput=0":                "throughput",
		"cosmos://[::1":                             "account",
		"cosmos://" + fakeKey:                       "account",
		"cosmos://u:p@acct":                         "key",
		"cosmos://" + fakeKey + "@acct/jobs":        "key",
		"cosmos://acct/" + fakeKey:                  "must hold no =",
		"cosmos://acct/jobs/leases/x":               "path",
		"cosmos://acct/jobs/throughput=400":         "begin with a ?",
		"cosmos://acct/%zz":                         "percent-encoded",
		"cosmos://acct#x":                           "key",
		"cosmos://acct?AccountKey=" + fakeKey:       "parameter AccountKey is unknown",
		"cosmos://acct?" + fakeKey:                  "name=value",
		"cosmos://acct?throughput=" + fakeKey:       "parameter throughput must be a number of RU/s",
		"cosmos://acct?serverless=maybe":            "parameter serverless",
		"cosmos://acct?serverSkew=soon":             "serverSkew must be a duration above 0, at most 1h0m0s, such as 500ms",
		"cosmos://acct?unsafeUnverifiedAccount=yes": "parameter unsafeUnverifiedAccount must be true or false",
		"cosmos://acct?insecureHTTP=true":           "loopback",
		"cosmos://10.0.0.1:80?insecureHTTP=true":    "loopback",
		"cosmos://acct?insecureSkipVerify=true":     "loopback",
	} {
		_, err := parseURI(uri)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseURI(%q) = %v, want an error that says %q", uri, err, want)
			continue
		}
		wantNoSecret(t, "parseURI", err.Error())
		wantNoSecret(t, "Redact", Redact(uri))
	}
}

func TestParseConnectionString(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]address{
		"AccountEndpoint=https://acct.documents.azure.com:443/;AccountKey=" + fakeKey + ";": {endpoint: "https://acct.documents.azure.com:443/", host: "acct.documents.azure.com:443"},
		" accountkey=" + fakeKey + " ; AccountEndpoint=https://acct.documents.azure.com":    {endpoint: "https://acct.documents.azure.com:443/", host: "acct.documents.azure.com:443"},
		"AccountEndpoint=http://127.0.0.1:8081/;AccountKey=" + fakeKey:                      {endpoint: "http://127.0.0.1:8081/", host: "127.0.0.1:8081", plain: true},
		"AccountEndpoint=http://[::1]/;AccountKey=" + fakeKey:                               {endpoint: "http://[::1]:80/", host: "[::1]:80", plain: true},
		"DisableServerCertificateValidation=True;AccountEndpoint=https://localhost:8081/;AccountKey=" + fakeKey: {
			endpoint: "https://localhost:8081/", host: "localhost:8081", skipVerify: true,
		},
	} {
		var got address
		key, err := got.parseConnectionString(text)
		if err != nil || got != want || key != fakeKey {
			t.Errorf("parseConnectionString(%q) = %+v, %q, %v, want %+v and the key", text, got, key, err, want)
		}
	}
	for _, text := range []string{
		";", "nonsense", fakeKey, "AccountKey=" + fakeKey, "AccountEndpoint=https://acct.documents.azure.com:443/",
		"AccountEndpoint=https://acct/;AccountEndpoint=https://other/;AccountKey=" + fakeKey,
		"AccountEndpoint=https://acct/;AccountKey=" + fakeKey + ";" + fakeKey + "=x",
		"AccountEndpoint=http://acct.documents.azure.com/;AccountKey=" + fakeKey,
		"AccountEndpoint=ftp://localhost/;AccountKey=" + fakeKey,
		"AccountEndpoint=https://u:" + fakeKey + "@acct/;AccountKey=" + fakeKey,
		"AccountEndpoint=https://acct/path;AccountKey=" + fakeKey,
		"AccountEndpoint=https://acct/?" + fakeKey + ";AccountKey=" + fakeKey,
		"AccountEndpoint=;AccountKey=" + fakeKey,
		"AccountEndpoint=https://acct/;AccountKey=",
		"DisableServerCertificateValidation=True;AccountEndpoint=https://acct.documents.azure.com/;AccountKey=" + fakeKey,
		"DisableServerCertificateValidation=" + fakeKey + ";AccountEndpoint=https://localhost/;AccountKey=" + fakeKey,
		"AccountEndpoint=https://acct/;AccountKey=" + fakeKey + ";Database=jobs",
	} {
		_, err := new(address).parseConnectionString(text)
		if err == nil {
			t.Errorf("parseConnectionString(%q) = nil, want an error", text)
			continue
		}
		wantNoSecret(t, "parseConnectionString", err.Error())
	}
}

func TestOpenTellsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	const connection = "AccountEndpoint=https://acct.documents.azure.com:443/;AccountKey=" + fakeKey
	for _, c := range []struct {
		name string
		o    Options
		want []string
	}{
		{"nothing", Options{}, []string{"either URI or ConnectionString"}},
		{"both", Options{URI: "cosmos://acct", ConnectionString: connection}, []string{"either URI or ConnectionString"}},
		{
			"much",
			Options{URI: "cosmos://a_b/%zz?x=y&serverSkew=soon", Key: "not base64 " + fakeKey, Database: "a/b", Container: "c#d", ServerSkew: -1, Throughput: 400, Serverless: true},
			[]string{"the account must be", "not percent-encoded", "parameter x is unknown", "serverSkew must be", "base64", `database "a/b"`, `container "c#d"`, "ServerSkew -1ns", "one of throughput"},
		},
		{"two credentials", Options{URI: "cosmos://acct", Key: fakeKey, Credential: &fakeCredential{}}, []string{"either Key or Credential"}},
		{"a key beside a connection string", Options{ConnectionString: connection, Key: fakeKey}, []string{"key of its own"}},
		{"a token without TLS", Options{URI: "cosmos://localhost:1?insecureHTTP=true", Credential: &fakeCredential{}}, []string{"tokens are sent to nobody but Azure"}},
		{"the default credential without TLS", Options{URI: "cosmos://localhost:1?insecureHTTP=true"}, []string{"need a Key"}},
		{"two databases", Options{URI: "cosmos://acct/a", Key: fakeKey, Database: "b"}, []string{`"b" in Options and "a" in the URI`}},
		{"two throughputs", Options{URI: "cosmos://acct?throughput=400", Key: fakeKey, Throughput: 500}, []string{"400 RU/s in the URI and 500 in Options"}},
		{"two skews", Options{URI: "cosmos://acct?serverSkew=1s", Key: fakeKey, ServerSkew: time.Minute}, []string{"serverSkew 1s in the URI and 1m0s in Options: give one"}},
		{"too little", Options{URI: "cosmos://acct", Key: fakeKey, Throughput: 300}, []string{"throughput 300 RU/s"}},
		{"an odd autoscale", Options{URI: "cosmos://acct", Key: fakeKey, Autoscale: 1500}, []string{"autoscale 1500 RU/s"}},
		{"too much", Options{URI: "cosmos://acct", Key: fakeKey, Throughput: math.MaxInt32}, []string{"throughput"}},
		{"an unverified transport", Options{URI: "cosmos://localhost:1?insecureSkipVerify=true", Key: fakeKey, Transport: newFake()}, []string{"insecureSkipVerify"}},
		{"a long name", Options{URI: "cosmos://acct", Key: fakeKey, Database: strings.Repeat("d", 256)}, []string{"255 bytes"}},
		{"a quote in a name, which ends up in JSON", Options{URI: "cosmos://acct", Key: fakeKey, Container: `x","y":"z`}, []string{`'"'`}},
	} {
		l, err := Open(t.Context(), c.o)
		if err == nil {
			_ = l.Close(t.Context())
			t.Errorf("%s: Open() = nil, want an error", c.name)
			continue
		}
		wantNoSecret(t, "Open", err.Error())
		documenttest.Says(t, c.name+": Open()", err, nil, c.want...)
	}
}

func TestLedgerNamesItsPlaceAndNoKey(t *testing.T) {
	t.Parallel()
	f := newFake()
	for want, o := range map[string]Options{
		"cosmos WorkerProcess/WorkerLeases at acct.documents.azure.com:443": {},
		"cosmos jobs/leases at acct.documents.azure.com:443":                {URI: "cosmos://acct/jobs/leases"},
		"cosmos a/b at acct.documents.azure.com:443":                        {ConnectionString: "AccountEndpoint=https://acct.documents.azure.com/;AccountKey=" + fakeKey, Database: "a", Container: "b"},
	} {
		documenttest.Equal(t, "String()", f.open(t, o).String(), want)
	}
}

func TestTheURIMayAssumeMoreOfAnAccount(t *testing.T) {
	t.Parallel()
	const uri = "cosmos://acct?serverSkew=700ms&unsafeUnverifiedAccount=true"
	for name, o := range map[string]Options{
		"the URI":             {URI: uri},
		"the URI and Options": {URI: uri, ServerSkew: 700 * time.Millisecond},
		"Options":             {ServerSkew: 700 * time.Millisecond, UnsafeUnverifiedAccount: true},
	} {
		f := newFake()
		delete(f.properties, "enableMultipleWriteLocations")
		s, err := f.open(t, o).Now(within(t, time.Minute))
		if err != nil || s.Skew != 700*time.Millisecond {
			t.Errorf("Now() with %s = %+v, %v, want a stamp with a skew of 700 ms", name, s, err)
		}
	}
	f := newFake()
	delete(f.properties, "enableMultipleWriteLocations")
	_, err := f.open(t, Options{}).Now(within(t, time.Minute))
	documenttest.Says(t, "Now() of an unverified account", err, store.ErrRefused, "unsafeUnverifiedAccount=true in the URI")
}
