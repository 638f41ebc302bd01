package azblob

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

func TestURIsAreRead(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]struct {
		address
		service string
	}{
		"azblob://acct/leases":                        {address{account: "acct", container: "leases"}, "https://acct.blob.core.windows.net"},
		"azblob://acct/leases/":                       {address{account: "acct", container: "leases"}, "https://acct.blob.core.windows.net"},
		"azblob://acct/leases-1/a/b_2/?serverSkew=1s": {address{account: "acct", container: "leases-1", folder: "a/b_2/", skew: time.Second}, "https://acct.blob.core.windows.net"},
		"azblob://acct/leases?endpoint=https%3A%2F%2Facct.blob.core.chinacloudapi.cn/": {address{account: "acct", container: "leases"}, "https://acct.blob.core.chinacloudapi.cn"},
		"azblob://acct/leases?endpoint=http://127.0.0.1:10000":                         {address{account: "acct", container: "leases"}, "http://127.0.0.1:10000/acct"},
		"azblob://acct/leases?endpoint=http://localhost:10000/acct":                    {address{account: "acct", container: "leases"}, "http://localhost:10000/acct"},
		"azblob://acct/leases?endpoint=http://azurite:10000/acct&insecureHTTP=true":    {address{account: "acct", container: "leases", plain: true}, "http://azurite:10000/acct"},
	} {
		u, err := url.Parse(want.service)
		must(t, "Parse()", err)
		want.address.service = u
		got, err := parseURI(uri)
		if err != nil || !reflect.DeepEqual(got, want.address) {
			t.Errorf("parseURI(%q) = %+v at %v, %v, want %+v at %v", uri, got, got.service, err, want.address, want.service)
		}
		documenttest.Equal(t, fmt.Sprintf("Redact(%q)", uri), Redact(uri), uri)
	}
}

func TestURIsThatAreWrongAreRefusedWithAllTheirFaults(t *testing.T) {
	t.Parallel()
	const key = "c4naryS3cretc4nary"
	documenttest.FaultsOf(t, func(uri string) error { _, err := parseURI(uri); return err }, Redact, key, map[string]string{
		"":                                       "must begin with azblob://",
		"azblob:acct/leases":                     "must begin with azblob://",
		"azblob://":                              "the account must have 3 to 24|the container must have 3 to 63",
		"azblob://Acct/leases":                   "the account must have",
		"azblob://acct-secondary/leases":         "the account must have",
		"azblob://acct":                          "the container must have",
		"azblob://acct/$root":                    "the container must have",
		"azblob://acct/a--b":                     "the container must have",
		"azblob://acct/leases/a b":               "the folder must have",
		"azblob://acct/leases/../a":              "no part of the folder may be made of dots",
		"azblob://acct:" + key + "@x/leases":     "must hold neither a key nor a user",
		"azblob://acct/leases#" + key:            "must hold neither a key nor a user",
		"azblob://acct/leases?sig=" + key:        "parameter sig is unknown: use endpoint, serverSkew, insecureHTTP",
		"azblob://acct/leases?AccountKey=" + key: "parameter AccountKey is unknown",
		"azblob://acct/leases?insecureHTTP=":     "parameter insecureHTTP must be true or false",
		"azblob://acct/leases?serverSkew=0":      "parameter serverSkew must be a duration",
		"azblob://acct/leases?endpoint=https://acct-secondary.blob.core.windows.net": "the secondary one of an account",
		"azblob://acct/leases?endpoint=https://h/other":                              "must have no path, or that of the account",
		"azblob://acct/leases?endpoint=http://azurite:10000":                         "endpoint must be https",
		"azblob://acct/leases?endpoint=https://u:" + key + "%40h":                    "parameter endpoint must be of the form",
		"azblob://A/b/a b?x=" + key + "&serverSkew=1":                                "the account must have|the container must have|the folder must have|parameter x is unknown|parameter serverSkew",
	})
}

func TestLoginsThatAreWrongAreRefusedUnseen(t *testing.T) {
	t.Parallel()
	const canary = "c4naryS3cretc4nary"
	for want, env := range map[string]map[string]string{
		"AZURE_STORAGE_KEY and AZURE_STORAGE_SAS_TOKEN are set: set one": {"AZURE_STORAGE_KEY": canary, "AZURE_STORAGE_SAS_TOKEN": canary},
		"the account key is not base64":                                  {"AZURE_STORAGE_KEY": canary + "!"},
		"the shared access signature must have the form":                 {"AZURE_STORAGE_SAS_TOKEN": canary},
		"is that of another account than the URI's":                      {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=" + canary + ";AccountKey=" + canary},
		"must have either an AccountKey or a SharedAccessSignature":      {"AZURE_STORAGE_CONNECTION_STRING": "AccountName=acct;BlobEndpoint=" + canary},
		"with each name once":                                            {"AZURE_STORAGE_CONNECTION_STRING": "AccountKey=" + canary + ";AccountKey=" + canary},
		"needs a key or a shared access signature":                       {},
	} {
		_, err := Open(t.Context(), Options{URI: uriOf("http://127.0.0.1:1", "leases"), Getenv: func(name string) string {
			if v := env[name]; !strings.HasPrefix(v, "AccountName=acct;") {
				return v
			}
			return strings.Replace(env[name], "AccountName=acct;", "AccountName=slotlease;", 1)
		}})
		documenttest.Says(t, "Open()", err, nil, want)
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("Open() = %v, want no secret", err)
		}
	}
	for want, o := range map[string]Options{
		"ServerSkew -1s must not be negative":        {ServerSkew: -time.Second},
		"serverSkew 1s in the URI and 2s in Options": {URI: "azblob://acct/leases?serverSkew=1s", ServerSkew: 2 * time.Second},
		"set either Key or Credential":               {Key: canary, Credential: failing{}},
	} {
		if o.URI == "" {
			o.URI = "azblob://acct/leases"
		}
		o.Getenv = func(string) string { return "" }
		_, err := Open(t.Context(), o)
		documenttest.Says(t, "Open()", err, nil, want)
	}
}

func TestTheStoreIsOpenedByItsScheme(t *testing.T) {
	t.Parallel()
	l, err := store.Open(t.Context(), "azblob://acct/leases/a", store.OpenOptions{ReadOnly: true, AppName: strings.Repeat("n", 99), Getenv: environment("AZURE_STORAGE_KEY", "a2V5")})
	must(t, "Open()", err)
	documenttest.Equal(t, "String()", fmt.Sprint(l), "azblob://acct/leases/a/")
	documenttest.Equal(t, "Redact()", store.Redact("azblob://acct/leases?sig=c4nary"), "azblob://***")
	must(t, "Close()", errors.Join(l.Close(t.Context()), l.Close(t.Context())))
}

// A key is base64 of 64 bytes, and so ends in ==.
func FuzzURIShowsNoSecret(f *testing.F) {
	parse := func(uri string) error { _, err := parseURI(uri); return err }
	documenttest.ShowNothing(f, parse, Redact, "azblob://acct:%s==@host/leases", "azblob://acct/leases?%s==", "azblob://acct/leases?sig=%s==", "azblob://acct/%s==",
		"azblob://acct/leases/%s==", "azblob://acct/leases?endpoint=https://u:%s==@h", "azblob://acct/leases?serverSkew=%s==",
		"https://acct.blob.core.windows.net/leases?sig=%s==")
}

func TestAFailoverThatDatesAreTooCoarseForIsRefused(t *testing.T) {
	t.Parallel()
	documenttest.CoarseFailover(t, opened(t, Options{URI: "azblob://acct/leases/a"}), 9200*time.Millisecond)
	documenttest.CoarseFailover(t, opened(t, Options{URI: "azblob://acct/leases/a", ServerSkew: time.Second}), 15200*time.Millisecond)
}
