package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
)

const canary = "c4naryS3cret"

func TestAURIIsTakenApart(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]address{
		"k8s:":                   {},
		"k8s:jobs":               {namespace: "jobs"},
		"k8s:jobs?context=a%20b": {namespace: "jobs", context: "a b"},
		"k8s:?kubeconfig=/a/b":   {kubeconfig: "/a/b"},
		"k8s:j?serverSkew=1s":    {namespace: "j", skew: time.Second},
		"k8s:j?oneServer=true&":  {namespace: "j", oneServer: true},
	} {
		if got, errs := parseURI(uri); got != want || len(errs) > 0 || Redact(uri) != uri {
			t.Errorf("parseURI(%s) = %+v, %v and Redact() = %s, want %+v", uri, got, errs, Redact(uri), want)
		}
	}
}

func TestAllFaultsOfAURIAreReportedWithoutSecrets(t *testing.T) {
	t.Parallel()
	documenttest.FaultsOf(t, func(uri string) error { _, err := Open(t.Context(), Options{URI: uri}); return err }, Redact, canary, map[string]string{
		"":                                "must begin with",
		"k8s://jobs":                      "without slashes",
		"k8s:Jobs":                        "namespace must be",
		"k8s:" + canary:                   "namespace must be",
		"k8s:j?token=" + canary:           "parameter token is unknown",
		"k8s:j?" + canary + "=1":          "name=value",
		"k8s:j?context":                   "context has an invalid value",
		"k8s:j?context=%00":               "context has an invalid value",
		"k8s:j?context=a&context=b":       "given twice",
		"k8s:j?serverSkew=" + canary:      "serverSkew must be",
		"k8s:J?oneServer=x&no=" + canary:  "namespace must be|oneServer must be|no is unknown",
		"k8s:j?oneServer=1&serverSkew=1s": "either OneServer",
	})
}

func TestOptionsThatContradictEachOtherAreRefused(t *testing.T) {
	t.Parallel()
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, "WriteFile()", os.WriteFile(broken, []byte("token: "+canary+"\n\t{"), 0o600))
	for want, o := range map[string]Options{
		"must not be negative":     {URI: "k8s:j", ServerSkew: -1},
		"serverSkew 1s in the URI": {URI: "k8s:j?serverSkew=1s", ServerSkew: 2},
		"Config in Options":        {URI: "k8s:j?context=a", Config: &rest.Config{}},
		"must name a namespace":    {URI: "k8s:", Config: &rest.Config{}},
		"no such file":             {URI: "k8s:j?kubeconfig=" + broken + "x"},
		"kubernetes: open":         {URI: "k8s:j?kubeconfig=" + broken},
	} {
		_, err := Open(t.Context(), o)
		if text := fmt.Sprint(err); !strings.Contains(text, want) || strings.Contains(text, canary) || strings.Contains(text, "\n") {
			t.Errorf("Open(%s) = %s, want %q", o.URI, text, want)
		}
	}
}

func TestStoreOpenReadsTheKubeconfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"a",
		"clusters":[{"name":"c","cluster":{"server":"https://api.example:6443/k8s/x"}}],
		"users":[{"name":"u","user":{"token":"`+canary+`"}}],
		"contexts":[{"name":"a","context":{"cluster":"c","user":"u","namespace":"team"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := store.Open(t.Context(), "k8s:?kubeconfig="+path, store.OpenOptions{})
	must(t, "Open()", err)
	defer l.Close(t.Context())
	c := l.(*Ledger).c
	if got := l.(*Ledger).FailoverFloor(); got != 5200*time.Millisecond {
		t.Errorf("FailoverFloor() = %v, want 5.2s", got)
	}
	if got := fmt.Sprint(l); got != "k8s:team at api.example:6443" || c.base != "https://api.example:6443/k8s/x" || c.skew != DefaultServerSkew || strings.Contains(c.secrets.Scrub(canary), canary) {
		t.Errorf("Open() = %s, %+v", got, c)
	}
}

func FuzzNoPartOfAURIIsShown(f *testing.F) {
	for _, s := range []string{"k8s:%s?context=a", "k8s:a?token=%s", "k8s:a?%s=1", "k8s:a?serverSkew=%s", "%s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, form string) {
		uri := strings.ReplaceAll(form, "%s", canary)
		_, errs := parseURI(uri)
		shown := Redact(uri)
		if len(errs) > 0 && strings.Contains(fmt.Sprint(errs)+shown, canary) || len(errs) == 0 && shown != uri {
			t.Errorf("%q shows a part of itself, or too little: %v, %s", uri, errs, shown)
		}
	})
}
