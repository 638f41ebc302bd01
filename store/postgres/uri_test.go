package postgres

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
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
	Open:         func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) },
	Certificates: map[string]string{"sslrootcert=/no/such/file": "open /no/such/file", "sslcert=x&sslkey=/no/such/key": "open /no/such/key", "sslrootcert=uri_test.go": "options: sslrootcert: "},
	Variable:     "PGPASSWORD",
	Name:         "postgres public.leases in d at localhost:1",
	Login: func(l store.Ledger) (password, app string) {
		return l.(*Ledger).config.Password, l.(*Ledger).config.RuntimeParams["application_name"]
	},
	Refused: map[string]string{
		"mysql://h/d":                                    "must begin with postgres://",
		"postgres://h/sslmode=require":                   "parameters begin with a ?",
		"postgres://h/d?sslpassword=" + canary:           "parameter sslpassword is unknown",
		"postgres://h/d?sslmode=maybe":                   "parameter sslmode must be",
		"postgres://h/d?sslmode=prefer":                  "go on without encryption",
		"postgres://h/d?sslmode=allow":                   "go on without encryption",
		"postgres://h/d?channel_binding=x":               "parameter channel_binding must be",
		"postgres://h/d?target_session_attrs=any":        "on the primary alone",
		"postgres://h/d?target_session_attrs=read-only":  "on the primary alone",
		"postgres://h/d?host=/run":                       "beside no other host",
		"postgres:///d?host=h":                           "the folder of a Unix socket",
		"postgres://localhost/d?sslrootcert=x":           "need TLS",
		"postgres://h/d?sslmode=disable&sslcert=x":       "need TLS",
		"postgres://[::1]/d?channel_binding=require":     "need TLS",
		"postgres:///d?host=/r&sslmode=require&sslkey=x": "need TLS",
	},
}

func TestParseURI(t *testing.T) {
	t.Parallel()
	one := func(host, port string) ([]string, []string) { return []string{host}, []string{port} }
	type at = storekit.DatabaseURI
	for uri, want := range map[string]struct {
		address
		host, port, shown string
	}{
		"postgres://db.example/jobs":                     {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, sslmode: "verify-full"}, "db.example", "5432", "postgres://db.example/jobs"},
		"postgresql://db.example:6432/jobs/":             {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, sslmode: "verify-full"}, "db.example", "6432", "postgresql://db.example:6432/jobs/"},
		"postgres://me@localhost/jobs":                   {address{Address: sqldb.Address{DatabaseURI: at{User: "me", Database: "jobs"}}, sslmode: "disable"}, "localhost", "5432", "postgres://***@localhost/jobs"},
		"postgres://me:p%40ss%3A%2F@127.0.0.1/my%20jobs": {address{Address: sqldb.Address{DatabaseURI: at{User: "me", Password: "p@ss:/", Database: "my jobs"}}, sslmode: "disable"}, "127.0.0.1", "5432", "postgres://me:***@127.0.0.1/my%20jobs"},
		"postgres://a%2Fb:x@[::1]:7/jobs":                {address{Address: sqldb.Address{DatabaseURI: at{User: "a/b", Password: "x", Database: "jobs"}}, sslmode: "disable"}, "::1", "7", "postgres://a%2Fb:***@[::1]:7/jobs"},
		"postgres://me:a:b@h/jobs?sslmode=require":       {address{Address: sqldb.Address{DatabaseURI: at{User: "me", Password: "a:b", Database: "jobs"}}, sslmode: "require"}, "h", "5432", "postgres://me:***@h/jobs?sslmode=require"},
		"postgres://%2Fvar%2Frun/jobs":                   {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, sslmode: "disable"}, "/var/run", "5432", "postgres://%2Fvar%2Frun/jobs"},
		"postgres:///jobs?host=/var/run":                 {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, sslmode: "disable"}, "/var/run", "5432", "postgres:///jobs?host=/var/run"},
		"postgres://h/jobs?schema=S1&table=leases_2":     {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}, Schema: "S1", Table: "leases_2"}, sslmode: "verify-full"}, "h", "5432", "postgres://h/jobs?schema=S1&table=leases_2"},
		"postgres://h/jobs?serverSkew=1.5s&maxConns=9&":  {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}, Skew: 1500 * time.Millisecond, MaxConns: 9}, sslmode: "verify-full"}, "h", "5432", "postgres://h/jobs?serverSkew=1.5s&maxConns=9&"},
		"postgres://h/jobs?connect_timeout=7&channel_binding=require&application_name=a%20b&target_session_attrs=read-write": {
			address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}, ConnectTimeout: 7 * time.Second, AppName: "a b"}, channelBinding: "require", sslmode: "verify-full"},
			"h", "5432",
			"postgres://h/jobs?connect_timeout=7&channel_binding=require&application_name=a%20b&target_session_attrs=read-write",
		},
		"postgres://h/jobs?sslrootcert=/a/b.pem&sslcert=c&sslkey=d": {
			address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, sslmode: "verify-full", sslrootcert: "/a/b.pem", sslcert: "c", sslkey: "d"}, "h", "5432", "postgres://h/jobs?sslrootcert=/a/b.pem&sslcert=c&sslkey=d",
		},
	} {
		want.Hosts, want.Ports = one(want.host, want.port)
		if got, err := parseURI(uri); err != nil || !reflect.DeepEqual(got, want.address) {
			t.Errorf("parseURI(%q) = %+v, %v, want %+v", uri, got, err, want.address)
		}
		documenttest.Equal(t, "Redact("+uri+")", Redact(uri), want.shown)
	}
	a, err := parseURI("postgres://me@127.0.0.1,[::1]:7,localhost:8/jobs")
	if place := a.Place(&form); err != nil || place != "127.0.0.1:5432,[::1]:7,localhost:8" || a.sslmode != "disable" {
		t.Errorf("parseURI() of three hosts = %+v at %s, %v, want all of them, without TLS", a, place, err)
	}
	if a, err := parseURI("postgres://me@127.0.0.1,other/jobs"); err != nil || a.sslmode != "verify-full" {
		t.Errorf("parseURI() of two hosts, one elsewhere = %+v, %v, want TLS", a, err)
	}
}

func TestURIs(t *testing.T) { uris.Run(t) }

func FuzzURINeverPanicsNorLeaks(f *testing.F) {
	uris.Fuzz(f, "postgres://h/d?table=t", "postgresql://[::1]:1,h:2/d", "postgres:///d?host=/run", "postgres://", "postgres://a?=&;", "postgres://h/%zz?sslmode=require", "mysql://a/b")
}
