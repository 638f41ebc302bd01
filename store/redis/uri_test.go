package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

func TestURIs(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"redis://h":                                            "redis://h:6379/0",
		"redis://h/":                                           "redis://h:6379/0",
		"redis://127.0.0.1:6380/15":                            "redis://127.0.0.1:6380/15",
		"redis://[::1]:6380/1":                                 "redis://[::1]:6380/1",
		"redis://[::1]":                                        "redis://[::1]:6379/0",
		"rediss://h.example.com:1/0":                           "rediss://h.example.com:1/0",
		"redis://:c4naryS3cret@h":                              "redis://:***@h:6379/0",
		"redis://worker:c4nary%40@h/2":                         "redis://worker:***@h:6379/2",
		"redis://h/0?prefix=slotlease":                         "redis://h:6379/0",
		"redis://h/0?prefix=my.jobs_1":                         "redis://h:6379/0?prefix=my.jobs_1",
		"redis://h?replicas=2&replicaWait=500ms&serverSkew=1s": "redis://h:6379/0?replicas=2&replicaWait=500ms&serverSkew=1s",
		"redis://h?replicaWait=2s&unsafeNoPersistence=true":    "redis://h:6379/0?unsafeNoPersistence=true",
		"rediss://localhost?insecureSkipVerify=true":           "rediss://localhost:6379/0?insecureSkipVerify=true",
		"redis+sentinel://a,b:1,[::1]/leases":                  "redis+sentinel://a:26379,b:1,[::1]:26379/leases/0",
		"rediss+sentinel://u:c4nary@a/leases/3":                "rediss+sentinel://u:***@a:26379/leases/3",
	} {
		if got := Redact(uri); got != want {
			t.Errorf("Redact(%q) = %q, want %q", uri, got, want)
		}
		l, err := Open(t.Context(), Options{URI: uri})
		if err != nil {
			t.Errorf("Open(%q) = %v, want nil", uri, err)
			continue
		}
		if got := l.String(); got != want {
			t.Errorf("String() of %q = %q, want %q", uri, got, want)
		}
		must(t, "Close()", l.Close(t.Context()))
	}
}

const canary = "c4naryS3cret"

// letters is a part of a secret that looks like the name of a parameter.
const letters = "canaryOfLetters"

func TestWhatIsWrongWithAURIIsSaidAtOnceAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	for uri, wants := range map[string][]string{
		"":                                           {"set either URI or Client"},
		canary:                                       {"must begin with redis://"},
		"mysql://u:" + canary + "@h/db":              {"must begin with redis://"},
		"redis://":                                   {"there must be a host"},
		"redis://" + canary + "@h":                   {"USER:PASSWORD or :PASSWORD"},
		"redis://u:@h":                               {"a user without a password"},
		"redis://u:" + canary + "/x@h":               {"/ ? # @ : and %"},
		"redis://u:" + canary + ":y@h":               {"percent-encoded"},
		"redis://u:" + canary + "%zz@h":              {"percent-encoded"},
		"redis://u:x?" + letters + "=1@h":            {"percent-encoded"},
		"redis://u:" + canary + "#1@h":               {"percent-encoded"},
		"redis://h:0":                                {"port must be from 1 to 65535"},
		"redis://h:x":                                {"HOST:PORT"},
		"redis://a,b/0":                              {"there must be a host"},
		"redis://::1/0":                              {"[brackets]"},
		"redis://h/x":                                {"database must be a number"},
		"redis://h/-1":                               {"database must be a number"},
		"redis://h/01":                               {"database must be a number"},
		"redis://h/0/1":                              {"database must be a number"},
		"redis+sentinel://h":                         {"/SERVICE"},
		"redis+sentinel://h,/leases":                 {"there must be a host"},
		"redis://h?" + canary:                        {"written name=value"},
		"redis://h?prefix={a}":                       {"parameter prefix"},
		"redis://h?prefix=":                          {"parameter prefix"},
		"redis://h?prefix=a&prefix=b":                {"given twice"},
		"redis://h?replicas=-1":                      {"parameter replicas"},
		"redis://h?replicaWait=1":                    {"parameter replicaWait"},
		"redis://h?replicaWait=2m":                   {"parameter replicaWait"},
		"redis://h?serverSkew=2h":                    {"parameter serverSkew"},
		"redis://h?unsafeNoPersistence=":             {"parameter unsafeNoPersistence"},
		"redis://h?dial_timeout=" + canary:           {"each parameter must be written"},
		"redis://h?password=" + canary:               {"parameter password is unknown"},
		"redis://h?insecureSkipVerify=true":          {"insecureSkipVerify is for rediss://"},
		"rediss://h.example?insecureSkipVerify=true": {"loopback"},
		"redis://h:0/x?replicas=x&nope=1":            {"port", "database", "replicas", "nope is unknown"},
	} {
		_, err := Open(t.Context(), Options{URI: uri})
		if err == nil {
			t.Errorf("Open(%q) = nil, want an error", uri)
			continue
		}
		for _, want := range wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Open(%q) = %v, want %q in it", uri, err, want)
			}
		}
		if shown := err.Error() + Redact(uri); strings.Contains(shown, canary) || strings.Contains(shown, letters) {
			t.Errorf("Open and Redact of %q show %q", uri, shown)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{URI: "redis://h?prefix=a", Prefix: "b"}, "give one"},
		{Options{URI: "redis://h", Prefix: "{b}"}, "the prefix must have"},
		{Options{URI: "redis://u:" + canary + "@h", Password: "x"}, "give a login either"},
		{Options{URI: "redis://h", Username: "x"}, "a Username without a Password"},
		{Options{URI: "redis://h", Replicas: -1}, "Replicas -1"},
		{Options{URI: "redis://h?replicas=1", Replicas: 2}, "replicas 1 in the URI and 2 in Options"},
		{Options{URI: "redis://h", ReplicaWait: time.Hour}, "ReplicaWait 1h0m0s"},
		{Options{URI: "redis://h", ServerSkew: -1}, "ServerSkew -1ns"},
		{Options{URI: "redis://h", TLS: noTLS}, "TLS goes with rediss://"},
	} {
		_, err := Open(t.Context(), c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("Open(%+v) = %v, want %q", c.o, err, c.want)
		}
	}
	l := openWith(t, Options{URI: "redis://h", Username: "worker", Password: canary, Prefix: "p", Replicas: 3, ReplicaWait: time.Second})
	if got, want := l.String(), "redis://worker:***@h:6379/0?prefix=p&replicas=3&replicaWait=1s"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

func TestTheRegistryOpensURIsWithThePasswordOfTheEnvironment(t *testing.T) {
	t.Parallel()
	env := store.OpenOptions{ReadOnly: true, Getenv: func(name string) string { return map[string]string{"REDISCLI_AUTH": canary}[name] }}
	for uri, want := range map[string]string{"redis://h": canary, "redis://u:other@h": "other"} {
		opened, err := store.Open(t.Context(), uri, env)
		must(t, "Open()", err)
		l := opened.(*Ledger)
		if l.address.password != want || !l.readOnly {
			t.Errorf("Open(%q) has another password, or isn't for reading only", uri)
		}
		must(t, "Close()", l.Close(t.Context()))
	}
	if _, err := store.Open(t.Context(), "redis://h/x", env); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("Open() of a broken URI = %v, want an error without secrets", err)
	}
	if got := store.Redact("redis://u:" + canary + "@h/0"); got != "redis://u:***@h:6379/0" {
		t.Errorf("Redact() = %q", got)
	}
}

func FuzzNoURIShowsItsPassword(f *testing.F) {
	for _, uri := range []string{"redis://u:%s@h/0", "redis://:%s@h", "redis://%s@h", "redis+sentinel://u:%s@a,b/c/1?prefix=p", "redis://h/0?password=%s", "redis://u:%s", "rediss://u:%s@h:x/y?z", "redis://%s:%s@h", "redis://u:%s@h#%s", "%s", "redis://[%s]"} {
		f.Add(strings.ReplaceAll(uri, "%s", canary))
	}
	f.Fuzz(func(t *testing.T, uri string) {
		if !strings.Contains(uri, canary) {
			return
		}
		// As a host, a user or a service it is no secret.
		public := false
		if a, err := parseURI(uri); err == nil {
			public = strings.Contains(strings.Join(append(a.hosts, a.user, a.service, a.prefix), " "), canary)
		}
		l, err := Open(t.Context(), Options{URI: uri})
		shown := fmt.Sprint(Redact(uri), err)
		if err == nil {
			shown += l.String()
			must(t, "Close()", l.Close(t.Context()))
		}
		if strings.Contains(shown, canary) && !public {
			t.Errorf("%q shows %q", uri, shown)
		}
	})
}
