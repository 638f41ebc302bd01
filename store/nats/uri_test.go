package nats

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

func TestAURIIsTakenApart(t *testing.T) {
	t.Parallel()
	a, errs := parseURI("nats://w%40x:p%3a@a.example,[::1]:1/jobs_1?tls=true&serverSkew=1s&syncAlways=true")
	if len(errs) > 0 || a.User != "w@x" || a.Password != "p:" || fmt.Sprint(a.Addresses()) != "[a.example:4222 [::1]:1]" || a.Database != "jobs_1" ||
		!a.tls || a.skew != time.Second || !a.syncAlways {
		t.Errorf("parseURI() = %+v, %v", a, errs)
	}
	if a, errs := parseURI("nats://h/b?creds=/a"); len(errs) > 0 || a.creds != "/a" || a.servers() != "nats://h:4222" {
		t.Errorf("parseURI() = %+v, %v", a, errs)
	}
}

func TestAllFaultsOfAURIAreReportedWithoutSecrets(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"":                                     "must begin with",
		"http://h/b":                           "must begin with",
		"nats://h":                             "the database is missing",
		"nats://h:0/b":                         "each host",
		"nats://h/a.b":                         "the bucket must be",
		"nats://u:" + canary + "/x@h/b":        "must be percent-encoded",
		"nats://h/b?token=" + canary:           "parameter token is unknown",
		"nats://h/b?tls=" + canary:             "true or false",
		"nats://h/b?serverSkew=" + canary:      "serverSkew must be",
		"nats://u:" + canary + "@h/b?creds=/a": "creds goes without a user",
	} {
		_, err := Open(t.Context(), Options{URI: uri})
		shown := Redact(uri)
		if text := fmt.Sprint(err); !strings.Contains(text, want) || strings.Contains(text+shown, canary) {
			t.Errorf("Open(%s) = %v, want %q; Redact() = %s", uri, err, want, shown)
		}
	}
	if got := Redact("nats://w:" + canary + "@h/b"); got != "nats://w:***@h/b" {
		t.Errorf("Redact() = %s", got)
	}
}

func TestThePasswordComesFromTheEnvironment(t *testing.T) {
	t.Parallel()
	l, err := store.Open(t.Context(), "nats://w@h/b", store.OpenOptions{Getenv: func(name string) string { return map[string]string{"NATS_PASSWORD": canary}[name] }})
	if err != nil || l.(*Ledger).b.at.Password != canary || fmt.Sprint(l) != "nats://h:4222/b" {
		t.Fatalf("Open() = %v, %v, want the password of the environment", l, err)
	}
}

func TestInitScriptNamesTheBucketAndTheRights(t *testing.T) {
	t.Parallel()
	if got := opened(t, "nats://h/jobs").InitScript(); !strings.Contains(got, "nats kv add jobs") || !strings.Contains(got, `"$KV.jobs.>"`) {
		t.Errorf("InitScript() = %s", got)
	}
}
