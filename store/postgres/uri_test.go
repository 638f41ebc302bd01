package postgres

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
)

const canary = documenttest.Canary

// uris are those of the store.
var uris = documenttest.URIs{
	Scheme: "postgres", Other: "postgresql", Redact: Redact,
	Parse: func(uri string) (whole bool, err error) {
		a, err := parseURI(uri)
		return len(a.Hosts) > 0 && len(a.Hosts) == len(a.Ports) && a.Database != "" && a.sslmode != "", err
	},
	Open: func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) },
}

func TestParseURI(t *testing.T) {
	t.Parallel()
	one := func(host, port string) ([]string, []string) { return []string{host}, []string{port} }
	type at = storekit.DatabaseURI
	for uri, want := range map[string]struct {
		address
		host, port, shown string
	}{
		"postgres://db.example/jobs":                     {address{DatabaseURI: at{Database: "jobs"}, sslmode: "verify-full"}, "db.example", "5432", "postgres://db.example/jobs"},
		"postgresql://db.example:6432/jobs/":             {address{DatabaseURI: at{Database: "jobs"}, sslmode: "verify-full"}, "db.example", "6432", "postgresql://db.example:6432/jobs/"},
		"postgres://me@localhost/jobs":                   {address{DatabaseURI: at{User: "me", Database: "jobs"}, sslmode: "disable"}, "localhost", "5432", "postgres://***@localhost/jobs"},
		"postgres://me:p%40ss%3A%2F@127.0.0.1/my%20jobs": {address{DatabaseURI: at{User: "me", Password: "p@ss:/", Database: "my jobs"}, sslmode: "disable"}, "127.0.0.1", "5432", "postgres://me:***@127.0.0.1/my%20jobs"},
		"postgres://a%2Fb:x@[::1]:7/jobs":                {address{DatabaseURI: at{User: "a/b", Password: "x", Database: "jobs"}, sslmode: "disable"}, "::1", "7", "postgres://a%2Fb:***@[::1]:7/jobs"},
		"postgres://me:a:b@h/jobs?sslmode=require":       {address{DatabaseURI: at{User: "me", Password: "a:b", Database: "jobs"}, sslmode: "require"}, "h", "5432", "postgres://me:***@h/jobs?sslmode=require"},
		"postgres://%2Fvar%2Frun/jobs":                   {address{DatabaseURI: at{Database: "jobs"}, sslmode: "disable"}, "/var/run", "5432", "postgres://%2Fvar%2Frun/jobs"},
		"postgres:///jobs?host=/var/run":                 {address{DatabaseURI: at{Database: "jobs"}, sslmode: "disable"}, "/var/run", "5432", "postgres:///jobs?host=/var/run"},
		"postgres://h/jobs?schema=S1&table=leases_2":     {address{DatabaseURI: at{Database: "jobs"}, schema: "S1", table: "leases_2", sslmode: "verify-full"}, "h", "5432", "postgres://h/jobs?schema=S1&table=leases_2"},
		"postgres://h/jobs?serverSkew=1.5s&maxConns=9&":  {address{DatabaseURI: at{Database: "jobs"}, skew: 1500 * time.Millisecond, maxConns: 9, sslmode: "verify-full"}, "h", "5432", "postgres://h/jobs?serverSkew=1.5s&maxConns=9&"},
		"postgres://h/jobs?connect_timeout=7&channel_binding=require&application_name=a%20b&target_session_attrs=read-write": {
			address{DatabaseURI: at{Database: "jobs"}, connectTimeout: 7 * time.Second, channelBinding: "require", appName: "a b", sslmode: "verify-full"},
			"h", "5432",
			"postgres://h/jobs?connect_timeout=7&channel_binding=require&application_name=a%20b&target_session_attrs=read-write",
		},
		"postgres://h/jobs?sslrootcert=/a/b.pem&sslcert=c&sslkey=d": {
			address{DatabaseURI: at{Database: "jobs"}, sslmode: "verify-full", sslrootcert: "/a/b.pem", sslcert: "c", sslkey: "d"}, "h", "5432", "postgres://h/jobs?sslrootcert=/a/b.pem&sslcert=c&sslkey=d",
		},
	} {
		want.Hosts, want.Ports = one(want.host, want.port)
		if got, err := parseURI(uri); err != nil || !reflect.DeepEqual(got, want.address) {
			t.Errorf("parseURI(%q) = %+v, %v, want %+v", uri, got, err, want.address)
		}
		documenttest.Equal(t, "Redact("+uri+")", Redact(uri), want.shown)
	}
	a, err := parseURI("postgres://me@127.0.0.1,[::1]:7,localhost:8/jobs")
	if place := a.place(); err != nil || place != "127.0.0.1:5432,[::1]:7,localhost:8" || a.sslmode != "disable" {
		t.Errorf("parseURI() of three hosts = %+v at %s, %v, want all of them, without TLS", a, place, err)
	}
	if a, err := parseURI("postgres://me@127.0.0.1,other/jobs"); err != nil || a.sslmode != "verify-full" {
		t.Errorf("parseURI() of two hosts, one elsewhere = %+v, %v, want TLS", a, err)
	}
}

func TestURIsThatAreRefused(t *testing.T) {
	t.Parallel()
	uris.AreRefused(t, map[string]string{
		"mysql://h/d":                                     "must begin with postgres://",
		"postgres://h/sslmode=require":                    "parameters begin with a ?",
		"postgres://h/d?sslpassword=" + canary:            "parameter sslpassword is unknown",
		"postgres://h/d?table=" + strings.Repeat("t", 57): "at most 56",
		"postgres://h/d?schema=a.b":                       "parameter schema must be a name",
		"postgres://h/d?sslmode=maybe":                    "parameter sslmode must be",
		"postgres://h/d?sslmode=prefer":                   "go on without encryption",
		"postgres://h/d?sslmode=allow":                    "go on without encryption",
		"postgres://h/d?channel_binding=x":                "parameter channel_binding must be",
		"postgres://h/d?connect_timeout=0":                "from 1 to 60",
		"postgres://h/d?connect_timeout=61":               "from 1 to 60",
		"postgres://h/d?connect_timeout=2s":               "from 1 to 60",
		"postgres://h/d?target_session_attrs=any":         "on the primary alone",
		"postgres://h/d?target_session_attrs=read-only":   "on the primary alone",
		"postgres://h/d?host=/run":                        "beside no other host",
		"postgres:///d?host=h":                            "the folder of a Unix socket",
		"postgres://h/d?application_name=%C3%A9":          "printable ASCII",
	})
	_, err := Open(t.Context(), Options{URI: "postgres://h:0/d?table=1&maxConns=0", ServerSkew: -1, MaxConns: -1, AppName: "\n"})
	documenttest.Says(t, "Open() of many faults", err, nil, "each host", "parameter table", "parameter maxConns", "ServerSkew -1ns", "MaxConns -1", "AppName")
}

func TestOptionsThatContradictTheURIAreRefused(t *testing.T) {
	t.Parallel()
	const uri = "postgres://me:" + canary + "@localhost/d?schema=a&table=b&serverSkew=1s"
	_, err := Open(t.Context(), Options{URI: uri, Schema: "x", Table: "y", ServerSkew: time.Minute, Password: "other"})
	documenttest.Says(t, "Open()", err, nil, "schema is given", "table is given", "serverSkew 1s", "a password is given")
	if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "other") {
		t.Errorf("Open() = %v, want no password", err)
	}
	_, err = Open(t.Context(), Options{URI: "postgres://me:" + canary + "@h/d?sslrootcert=/no/such/" + canary})
	documenttest.Says(t, "Open() without its certificate", err, nil, "no such file")
	if strings.Contains(err.Error(), canary) {
		t.Errorf("Open() = %v, want no password", err)
	}
}

func TestALedgerIsOpenedByItsScheme(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"postgres", "postgresql"} {
		uri := name + "://me@localhost:1/d?table=leases"
		l, err := store.Open(t.Context(), uri, store.OpenOptions{ReadOnly: true, AppName: "leasectl", Getenv: func(name string) string {
			return map[string]string{"PGPASSWORD": canary}[name]
		}})
		must(t, "Open()", err)
		own := l.(*Ledger)
		if own.String() != "postgres public.leases in d at localhost:1" || !(own.MayWrite("append") != nil) || own.config.Password != canary || own.config.RuntimeParams["application_name"] != "leasectl" {
			t.Errorf("Open(%s) = %s, read only %v, as %s, want what the URI and the options say", uri, own, (own.MayWrite("append") != nil), own.config.RuntimeParams)
		}
		must(t, "Close()", l.Close(t.Context()))
		documenttest.Equal(t, "store.Redact()", store.Redact(name+"://me:"+canary+"@h/d"), name+"://me:***@h/d")
	}
}

func TestNoErrorShowsAPassword(t *testing.T) {
	t.Parallel()
	uris.HidePasswords(t)
}

func FuzzURINeverPanicsNorLeaks(f *testing.F) {
	uris.Fuzz(f, "postgres://h/d?table=t", "postgresql://[::1]:1,h:2/d", "postgres:///d?host=/run", "postgres://", "postgres://a?=&;", "postgres://h/%zz?sslmode=require", "mysql://a/b")
}
