package etcd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

func TestAURIIsTakenApart(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]address{
		"etcd://localhost":             {hosts: []string{"localhost:2379"}, prefix: "slotlease"},
		"etcds://a.example,b:1/":       {hosts: []string{"a.example:2379", "b:1"}, encrypted: true, prefix: "slotlease"},
		"etcd://[::1]:7,[::2]/x/y.z/":  {hosts: []string{"[::1]:7", "[::2]:2379"}, prefix: "x/y.z"},
		"etcd://h?user=a%20b":          {hosts: []string{"h:2379"}, prefix: "slotlease", user: "a b"},
		"etcd://h?oneMember=true":      {hosts: []string{"h:2379"}, prefix: "slotlease", oneMember: true},
		"etcd://h/p?serverSkew=500ms&": {hosts: []string{"h:2379"}, prefix: "p", skew: 500 * time.Millisecond},
		"etcds://h?ca=/a&cert=/b&key=/c&serverName=n&user=u&passwordFile=/d": {
			hosts: []string{"h:2379"}, encrypted: true, prefix: "slotlease", ca: "/a", cert: "/b", key: "/c", serverName: "n", user: "u", passwordFile: "/d",
		},
	} {
		got, errs := parseURI(uri)
		if fmt.Sprint(got) != fmt.Sprint(want) || len(errs) > 0 {
			t.Errorf("parseURI(%s) = %+v, %v, want %+v", uri, got, errs, want)
		}
		if got := Redact(uri); got != uri {
			t.Errorf("Redact(%s) = %s, want it unchanged", uri, got)
		}
	}
}

func TestAllFaultsOfAURIAreReportedWithoutSecrets(t *testing.T) {
	t.Parallel()
	documenttest.FaultsOf(t, func(uri string) error { _, err := Open(t.Context(), Options{URI: uri}); return err }, Redact, canary, map[string]string{
		"":                              "must begin with",
		"http://h":                      "must begin with",
		"etcd://":                       "each endpoint",
		"etcd://h,":                     "each endpoint",
		"etcd://h:0":                    "each endpoint",
		"etcd://h:65536":                "each endpoint",
		"etcd://-h":                     "each endpoint",
		"etcd://user:" + canary + "@h":  "neither a user nor a password",
		"etcd://h/a//b":                 "prefix",
		"etcd://h/a%2fb":                "prefix",
		"etcd://h/" + canary + "=&x":    "prefix",
		"etcd://h?password=" + canary:   "assword is unknown: use user, passwordFile",
		"etcd://h?Password=" + canary:   "assword is unknown: use user, passwordFile",
		"etcd://h?" + canary + "=1":     "name=value",
		"etcd://h?user":                 "parameter user has an invalid value",
		"etcd://h?user=%0a":             "parameter user has an invalid value",
		"etcd://h?user=a&user=b":        "parameter user is given twice",
		"etcd://h?other=" + canary:      "parameter other is unknown",
		"etcd://h?serverSkew=" + canary: "serverSkew must be",
		"etcd://h?serverSkew=2h":        "serverSkew must be",
		"etcd://h?oneMember=" + canary:  "oneMember must be",
		"etcd://h?ca=/a":                "go with etcds://",
		"etcds://h?cert=/" + canary:     "cert and key go together",
		"etcd://h?passwordFile=/a":      "passwordFile goes with user",
		"etcd://:0/a//b?oneMember=x&no=" + canary + "&serverSkew=0s": "each endpoint|prefix|oneMember|no is unknown|serverSkew",
	})
}

func TestOptionsThatContradictEachOtherAreRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	must(t, "WriteFile()", os.WriteFile(file, []byte(canary+"\r\n"), 0o600))
	empty := filepath.Join(t.TempDir(), "empty")
	must(t, "WriteFile()", os.WriteFile(empty, []byte("\n"), 0o600))
	large := filepath.Join(t.TempDir(), "large")
	must(t, "WriteFile()", os.WriteFile(large, []byte(strings.Repeat(canary, 1000)), 0o600))
	cert, key := documenttest.Certificate(t)
	for want, o := range map[string]Options{
		"another in the URI":       {URI: "etcd://h?user=a", User: "b", Password: canary},
		"a user needs a password":  {URI: "etcd://h?user=a"},
		"a password a user":        {URI: "etcd://h", Password: canary},
		"Password and the URI's":   {URI: "etcd://h?user=a&passwordFile=" + file, Password: canary},
		"no such file":             {URI: "etcd://h?user=a&passwordFile=" + file + "x"},
		"is empty":                 {URI: "etcd://h?user=a&passwordFile=" + empty},
		"more than 4096 bytes":     {URI: "etcd://h?user=a&passwordFile=" + large},
		"must not be negative":     {URI: "etcd://h", ServerSkew: -1},
		"serverSkew 1s in the URI": {URI: "etcd://h?serverSkew=1s", ServerSkew: 2},
		"either OneMember":         {URI: "etcd://h?serverSkew=1s", OneMember: true},
		"ca: open":                 {URI: "etcds://h?ca=" + file + "x"},
		"has no certificate":       {URI: "etcds://h?ca=" + file},
		"cert and key: ":           {URI: "etcds://h?cert=" + key + "&key=" + cert},
	} {
		_, err := Open(t.Context(), o)
		if text := fmt.Sprint(err); !strings.Contains(text, want) || strings.Contains(text, canary) {
			t.Errorf("Open(%s) = %s, want %q", o.URI, text, want)
		}
	}
	l, err := Open(t.Context(), Options{URI: "etcd://h?user=a&passwordFile=" + file})
	if err != nil || l.c.password != canary || l.c.skew != DefaultServerSkew || l.String() != "etcd://h:2379/slotlease" {
		t.Fatalf("Open() = %v, %v, want the password of the file without its line break", l, err)
	}
	must(t, "Close()", l.Close(t.Context()))
}

func TestStoreOpenTakesThePasswordFromTheEnvironment(t *testing.T) {
	t.Parallel()
	l, err := store.Open(t.Context(), "etcd://h?user=a", store.OpenOptions{Getenv: func(name string) string {
		return map[string]string{"ETCD_PASSWORD": canary}[name]
	}})
	if err != nil || l.(*Ledger).c.password != canary {
		t.Fatalf("Open() = %v, %v, want the password of the environment", l, err)
	}
	must(t, "Close()", l.Close(t.Context()))
	if _, err := store.Open(t.Context(), "etcds://h?user=a", store.OpenOptions{Getenv: func(string) string { return "" }}); err == nil || !strings.Contains(err.Error(), "ETCD_PASSWORD") {
		t.Errorf("Open() without a password = %v", err)
	}
}

func FuzzNoPartOfAURIIsShown(f *testing.F) {
	for _, s := range []string{"etcd://h?user=", "etcd://u:%s@h/p", "etcds://h/p?password=%s", "etcd://h,%s:1", "etcd://h?%s=1", "etcd://[%s]", "etcd://h/p?serverSkew=%s#%s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, form string) {
		uri := strings.ReplaceAll(form, "%s", canary)
		_, errs := parseURI(uri)
		shown := Redact(uri)
		if len(errs) > 0 && strings.Contains(fmt.Sprint(errs)+shown, canary) {
			t.Errorf("%q shows a part of itself: %v, %s", uri, errs, shown)
		}
		if len(errs) == 0 && shown != uri {
			t.Errorf("Redact(%q) = %q, want it unchanged", uri, shown)
		}
	})
}
