package documenttest

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// Canary is a secret that nothing may show, and Letters is one that looks like the name of a parameter.
const (
	Canary  = "c4naryS3cretc4nary"
	Letters = "canaryOfLetters"
)

// URIs are those of a store that reads them with a storekit.DatabaseURI.
type URIs struct {
	// Scheme and Other begin them.
	Scheme, Other string
	// Parse takes one apart. whole reports that there are hosts with a port each, or a socket, a database and a mode of TLS.
	Parse  func(uri string) (whole bool, err error)
	Redact func(uri string) string
	Open   func(ctx context.Context, uri string) (store.Ledger, error)
	// Refused are URIs that the store refuses, and what is said of each.
	Refused map[string]string
	// Certificates are parameters with files that can't be read, and what is said of each.
	Certificates map[string]string
	// Variable of the environment has the password, and Login is with what a ledger logs in, and as what program.
	Variable string
	Login    func(l store.Ledger) (password, app string)
	// Name is that of a ledger in the table leases of the database d of localhost:1.
	Name string
}

// Run runs the tests.
func (s URIs) Run(t *testing.T) {
	t.Helper()
	t.Run("what no store takes is refused", s.areRefused)
	t.Run("a certificate that can't be read is refused", s.certificates)
	t.Run("a ledger is opened by its scheme", s.opens)
	t.Run("no error shows a password", s.hidePasswords)
}

func (s URIs) certificates(t *testing.T) {
	t.Parallel()
	for parameter, says := range s.Certificates {
		_, err := s.Open(t.Context(), s.Scheme+"://me:"+Canary+"@h/d?"+parameter)
		Says(t, "Open() without its certificate", err, nil, says)
		if strings.Contains(fmt.Sprint(err), Canary) {
			t.Errorf("Open() = %v, want no password", err)
		}
	}
}

func (s URIs) opens(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{s.Scheme, s.Other} {
		l, err := store.Open(t.Context(), scheme+"://me@localhost:1/d?table=leases", store.OpenOptions{ReadOnly: true, AppName: "leasectl", Getenv: func(name string) string {
			return map[string]string{s.Variable: Canary}[name]
		}})
		Must(t, "Open()", err)
		if password, app := s.Login(l); password != Canary || app != "leasectl" || fmt.Sprint(l) != s.Name {
			t.Errorf("Open(%s) = %s, as %s, want %s, as leasectl, with the password of %s", scheme, l, app, s.Name, s.Variable)
		}
		Is(t, "Init() of a handle that only reads", l.Init(t.Context()), store.ErrDenied)
		Must(t, "Close()", l.Close(t.Context()))
		Equal(t, "store.Redact()", store.Redact(scheme+"://me:"+Canary+"@h/d"), scheme+"://me:***@h/d")
	}
}

// refused are URIs without their scheme, and what is said of each.
var refused = map[string]string{
	":h/d":                          "must begin with ",
	"://":                           "the database is missing",
	"://h":                          "the database is missing",
	":///d":                         "the host is missing",
	"://h/d/e":                      "more than one",
	"://h/%zz":                      "the database is not percent-encoded",
	"://h:0/d":                      "each host",
	"://h:70000/d":                  "each host",
	"://h:+5/d":                     "each host",
	"://h:/d":                       "each host",
	"://[::1/d":                     "each host",
	"://[1.2.3.4]/d":                "each host",
	"://h,/d":                       "each host",
	"://h h/d":                      "each host",
	"://:" + Canary + "@h/d":        "is empty before the @",
	"://me:@h/d":                    "is empty before the @",
	"://@h/d":                       "is empty before the @",
	"://me:" + Canary + "/x@h/d":    "percent-encoded in a user",
	"://me:x?" + Letters + "=1@h/d": "percent-encoded in a user",
	"://me:" + Canary + "?x@h/d":    "percent-encoded in a user",
	"://me:" + Canary + "#x@h/d":    "percent-encoded in a user",
	"://me:x@" + Canary + "@h/d":    "user or password is not percent-encoded",
	"://me:" + Canary + "%zz@h/d":   "user or password is not percent-encoded",
	"://me:" + Canary:               "each host",
	"://h/d?password=" + Canary:     "parameter password is unknown",
	"://h/d?" + Canary:              "name=value",
	"://h/d?Table=x":                "parameter Table is unknown",
	"://h/d?table":                  "parameter table has no value",
	"://h/d?table=":                 "parameter table has no value",
	"://h/d?table=a&table=b":        "parameter table is given twice",
	"://h/d?table=1a":               "parameter table must be a name",
	"://h/d?serverSkew=0s":          "a duration above 0",
	"://h/d?serverSkew=61m":         "a duration above 0",
	"://h/d?maxConns=0":             "from 1 to 1000",
	"://h/d?maxConns=1001":          "from 1 to 1000",
}

// areRefused demands errors of URIs that no such store takes, and of own ones, which say something and show no secret.
func (s URIs) areRefused(t *testing.T) {
	t.Parallel()
	all := maps.Clone(s.Refused)
	all[""] = "must begin with " + s.Scheme + "://"
	for rest, want := range refused {
		if strings.HasSuffix(want, " with ") {
			want += s.Scheme + "://"
		}
		all[s.Scheme+rest] = want
	}
	for uri, want := range all {
		_, err := s.Parse(uri)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseURI(%q) = %v, want an error that says %q", uri, err, want)
			continue
		}
		if shown := s.Redact(uri); strings.Contains(err.Error()+shown, Canary) || strings.Contains(err.Error()+shown, Letters) {
			t.Errorf("parseURI(%q) = %v, Redact() = %q, want no secret", uri, err, shown)
		}
	}
}

// Fuzz demands that URIs are taken apart whole, and that nothing shows a secret in one.
func (s URIs) Fuzz(f *testing.F, seeds ...string) {
	f.Helper()
	for i, uri := range seeds {
		for j, key := range []string{"", "s3cret+/", "x@h/", "%zz", "a=b&c=d", "p\"\\\x00\xff", "a;b", "#"} {
			f.Add(uri, key, byte(8*i+j))
		}
	}
	begin := s.Scheme + "://"
	f.Fuzz(func(t *testing.T, uri, key string, shape byte) {
		if whole, err := s.Parse(uri); err == nil && !whole {
			t.Errorf("parseURI(%q) has no error, and lacks hosts, ports, a database or a mode of TLS", uri)
		}
		key = Canary + key
		// A user, or a host, may be shown.
		alone := strings.NewReplacer(":", "", "/", "", "?", "", ",", "").Replace(key)
		whole := []string{
			begin + alone + "@h/d", begin + "u:" + key + "@h/d", begin + alone, begin + "u:" + key, s.Other + "://u:" + key + "@" + strings.TrimPrefix(uri, begin),
			begin + "h/d?" + key, begin + "h/d?password=" + key, "https://u:" + key + "@h",
		}[shape%8]
		if shown := s.Redact(whole); strings.Contains(shown, Canary) {
			t.Fatalf("Redact(%q) = %q, want no secret", whole, shown)
		}
		if _, err := s.Parse(whole); err != nil && strings.Contains(err.Error(), Canary) {
			t.Fatalf("parseURI(%q) = %v, want no secret", whole, err)
		}
		if l, err := s.Open(t.Context(), whole); err == nil {
			if shown := fmt.Sprint(l); strings.Contains(shown, Canary) {
				t.Errorf("Open(%q) = %s, want no secret", whole, shown)
			}
			_ = l.Close(t.Context())
		} else if strings.Contains(err.Error(), Canary) {
			t.Fatalf("Open(%q) = %v, want no secret", whole, err)
		}
	})
}

// hidePasswords demands that nothing shows a password of a server that can't be reached: no error, finding, warning or name.
func (s URIs) hidePasswords(t *testing.T) {
	t.Parallel()
	opened, err := s.Open(t.Context(), s.Scheme+"://me:"+Canary+"@127.0.0.1:1/d")
	Must(t, "Open()", err)
	defer func() { _ = opened.Close(context.WithoutCancel(t.Context())) }()
	for name, call := range Operations(opened, storetest.Grant("job", 1)) {
		if err := call(Within(t, time.Minute)); err == nil || strings.Contains(err.Error(), Canary) || strings.Contains(store.Detail(err), Canary) {
			t.Errorf("%s = %v (%s), want an error without the password", name, err, store.Detail(err))
		}
	}
	l := opened.(interface {
		Examine(ctx context.Context) ([]store.Finding, error)
		Warning() string
		fmt.Stringer
	})
	if found, err := l.Examine(Within(t, time.Minute)); err != nil || strings.Contains(Lines(found)+l.String()+l.Warning(), Canary) {
		t.Errorf("Examine() = %s, %v, want no password", Lines(found), err)
	}
}
