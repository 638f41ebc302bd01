package s3

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

func TestURIsAreRead(t *testing.T) {
	t.Parallel()
	at := func(s string) *url.URL {
		u, err := url.Parse(s)
		must(t, "Parse()", err)
		return u
	}
	for uri, want := range map[string]address{
		"s3://jobs":             {bucket: "jobs"},
		"s3://jobs/":            {bucket: "jobs"},
		"s3://my.jobs-1/a/b_2/": {bucket: "my.jobs-1", folder: "a/b_2/"},
		"s3://jobs/a?region=eu-central-1&serverSkew=1s":                   {bucket: "jobs", folder: "a/", region: "eu-central-1", skew: time.Second},
		"s3://jobs?endpoint=https%3A%2F%2Fs3.example:9000&pathStyle=true": {bucket: "jobs", endpoint: at("https://s3.example:9000"), pathStyle: true},
		"s3://jobs?endpoint=http://127.0.0.1:9000":                        {bucket: "jobs", endpoint: at("http://127.0.0.1:9000")},
		"s3://jobs?endpoint=http://minio:9000&insecureHTTP=true":          {bucket: "jobs", endpoint: at("http://minio:9000"), plain: true},
	} {
		got, err := parseURI(uri)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("parseURI(%q) = %+v, %v, want %+v", uri, got, err, want)
		}
		documenttest.Equal(t, fmt.Sprintf("Redact(%q)", uri), Redact(uri), uri)
	}
}

func TestURIsThatAreWrongAreRefusedWithAllTheirFaults(t *testing.T) {
	t.Parallel()
	const key = "c4naryS3cretc4nary"
	documenttest.FaultsOf(t, func(uri string) error { _, err := parseURI(uri); return err }, Redact, key, map[string]string{
		"":                               "must begin with s3://",
		"s3:jobs":                        "must begin with s3://",
		"s3://":                          "the bucket must have 3 to 63",
		"s3://Jobs":                      "the bucket must have",
		"s3://a..b":                      "the bucket must have",
		"s3://192.168.5.4":               "the bucket must have",
		"s3://jobs--use1-az4--x-s3":      "a directory bucket",
		"s3://jobs--ol-s3":               "an Object Lambda access point",
		"s3://abcdef.mrap":               "a multi-region access point",
		"s3://jobs-abc-s3alias":          "an access point: name its bucket",
		"s3://jobs--table-s3":            "a table bucket",
		"s3://arn:aws:s3:::jobs":         "the bucket must have",
		"s3://jobs/a b":                  "the folder must have",
		"s3://jobs/../a":                 "no part of the folder may be made of dots",
		"s3://id:" + key + "@jobs":       "must hold neither a key nor a user",
		"s3://jobs/a#" + key:             "must hold neither a key nor a user",
		"s3://jobs?secret=" + key:        "parameter secret is unknown: use endpoint, region, pathStyle, serverSkew, insecureHTTP",
		"s3://jobs?region=EU":            "parameter region must be a region",
		"s3://jobs?pathStyle=yes":        "parameter pathStyle must be true or false",
		"s3://jobs?insecureHTTP=":        "parameter insecureHTTP must be true or false",
		"s3://jobs?serverSkew=2h":        "parameter serverSkew must be a duration",
		"s3://jobs?endpoint=s3.example":  "parameter endpoint must be of the form",
		"s3://jobs?endpoint=https://h/p": "parameter endpoint must have no path",
		"s3://jobs?endpoint=https://u:" + key + "%40h":                     "parameter endpoint must be of the form",
		"s3://jobs?endpoint=http://minio:9000":                             "endpoint must be https",
		"s3://Jobs/a b?region=EU&x=" + key + "&endpoint=http://minio:9000": "the bucket must have|the folder must have|parameter region|parameter x is unknown|endpoint must be https",
	})
}

func TestOptionsThatAreWrongAreRefused(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	for want, o := range map[string]Options{
		"ServerSkew -1s must not be negative":        {URI: "s3://jobs", ServerSkew: -time.Second},
		"serverSkew 1s in the URI and 2s in Options": {URI: "s3://jobs?serverSkew=1s", ServerSkew: 2 * time.Second},
		"set both, or none":                          {URI: "s3://jobs?region=eu-west-1", Getenv: func(name string) string { return map[string]string{"AWS_ACCESS_KEY_ID": "id"}[name] }},
		"must begin with s3://":                      {},
	} {
		if o.Getenv == nil {
			o.Getenv = none
		}
		_, err := Open(t.Context(), o)
		documenttest.Says(t, "Open()", err, nil, want)
	}
}

func TestTheStoreIsOpenedByItsScheme(t *testing.T) {
	t.Parallel()
	l, err := store.Open(t.Context(), "s3://jobs/a?region=eu-west-1", store.OpenOptions{ReadOnly: true, Getenv: environment("id")})
	must(t, "Open()", err)
	documenttest.Equal(t, "String()", fmt.Sprint(l), "s3://jobs/a/")
	documenttest.Equal(t, "Redact()", store.Redact("s3://id:c4nary@jobs"), "s3://***")
	must(t, "Close()", errors.Join(l.Close(t.Context()), l.Close(t.Context())))
}

func TestTheSDKWritesNothingToTheStandardError(t *testing.T) {
	t.Parallel()
	cfg, err := configure(t.Context(), Options{Getenv: environment("id")}, address{region: "eu-west-1"}, &Ledger{})
	must(t, "configure()", err)
	documenttest.Equal(t, "the logger", fmt.Sprintf("%T", cfg.Logger), "logging.Nop")
}

func FuzzURIShowsNoSecret(f *testing.F) {
	parse := func(uri string) error { _, err := parseURI(uri); return err }
	documenttest.ShowNothing(f, parse, Redact, "s3://%s@jobs/a", "s3://id:%s@jobs", "s3://jobs?%s", "s3://jobs?secret=%s", "s3://jobs/a=%s",
		"s3://jobs?endpoint=https://u:%s@h", "s3://jobs?serverSkew=%s", "https://%s@jobs")
}

func TestAFailoverThatDatesAreTooCoarseForIsRefused(t *testing.T) {
	t.Parallel()
	documenttest.CoarseFailover(t, opened(t, Options{URI: "s3://jobs/a?region=eu-west-1"}), 9200*time.Millisecond)
	documenttest.CoarseFailover(t, opened(t, Options{URI: "s3://jobs/a?endpoint=https://s3.example", ServerSkew: time.Second}), 15200*time.Millisecond)
}
