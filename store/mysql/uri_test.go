package mysql

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
	Scheme: "mysql", Other: "mariadb", Redact: Redact,
	Parse: func(uri string) (whole bool, err error) {
		a, err := parseURI(uri)
		return (len(a.Hosts) > 0 || a.Socket != "") && len(a.Hosts) == len(a.Ports) && a.Database != "" && a.tls != "", err
	},
	Open: func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) },
}

func TestParseURI(t *testing.T) {
	t.Parallel()
	type at = storekit.DatabaseURI
	for uri, want := range map[string]struct {
		address
		host, port, shown string
	}{
		"mysql://db.example/jobs":                     {address{DatabaseURI: at{Database: "jobs"}, tls: "true"}, "db.example", "3306", "mysql://db.example/jobs"},
		"mariadb://db.example:3307/jobs/":             {address{DatabaseURI: at{Database: "jobs"}, tls: "true"}, "db.example", "3307", "mariadb://db.example:3307/jobs/"},
		"mysql://me@localhost/jobs":                   {address{DatabaseURI: at{User: "me", Database: "jobs"}, tls: "false"}, "localhost", "3306", "mysql://***@localhost/jobs"},
		"mysql://me:p%40ss%3A%2F@127.0.0.1/my%20jobs": {address{DatabaseURI: at{User: "me", Password: "p@ss:/", Database: "my jobs"}, tls: "false"}, "127.0.0.1", "3306", "mysql://me:***@127.0.0.1/my%20jobs"},
		"mysql://a%2Fb:x@[::1]:7/jobs":                {address{DatabaseURI: at{User: "a/b", Password: "x", Database: "jobs"}, tls: "false"}, "::1", "7", "mysql://a%2Fb:***@[::1]:7/jobs"},
		"mysql://me:a:b@h/jobs?tls=skip-verify":       {address{DatabaseURI: at{User: "me", Password: "a:b", Database: "jobs"}, tls: "skip-verify"}, "h", "3306", "mysql://me:***@h/jobs?tls=skip-verify"},
		"mysql://h/jobs?table=leases_2&tls=false":     {address{DatabaseURI: at{Database: "jobs"}, table: "leases_2", tls: "false"}, "h", "3306", "mysql://h/jobs?table=leases_2&tls=false"},
		"mysql://h/jobs?serverSkew=1.5s&maxConns=9&":  {address{DatabaseURI: at{Database: "jobs"}, skew: 1500 * time.Millisecond, maxConns: 9, tls: "true"}, "h", "3306", "mysql://h/jobs?serverSkew=1.5s&maxConns=9&"},
		"mysql://h/jobs?connectTimeout=7s&appName=a%20b": {
			address{DatabaseURI: at{Database: "jobs"}, connectTimeout: 7 * time.Second, appName: "a b", tls: "true"}, "h", "3306", "mysql://h/jobs?connectTimeout=7s&appName=a%20b",
		},
		"mysql://h/jobs?tlsCA=/a/b.pem&tlsCert=c&tlsKey=d": {
			address{DatabaseURI: at{Database: "jobs"}, tls: "true", ca: "/a/b.pem", cert: "c", key: "d"}, "h", "3306", "mysql://h/jobs?tlsCA=/a/b.pem&tlsCert=c&tlsKey=d",
		},
	} {
		want.Hosts, want.Ports = []string{want.host}, []string{want.port}
		if got, err := parseURI(uri); err != nil || !reflect.DeepEqual(got, want.address) {
			t.Errorf("parseURI(%q) = %+v, %v, want %+v", uri, got, err, want.address)
		}
		documenttest.Equal(t, "Redact("+uri+")", Redact(uri), want.shown)
	}
	a, err := parseURI("mysql://me@127.0.0.1,[::1]:7,localhost:8/jobs")
	if place := a.place(); err != nil || place != "127.0.0.1:3306,[::1]:7,localhost:8" || a.tls != tlsOff {
		t.Errorf("parseURI() of three hosts = %+v at %s, %v, want all of them, without TLS", a, place, err)
	}
	if a, err := parseURI("mysql://me@127.0.0.1,other/jobs"); err != nil || a.tls != tlsVerify {
		t.Errorf("parseURI() of two hosts, one elsewhere = %+v, %v, want TLS", a, err)
	}
	a, err = parseURI("mysql:///jobs?socket=/run/mysqld/mysqld.sock")
	if place := a.place(); err != nil || place != "/run/mysqld/mysqld.sock" || a.tls != tlsOff {
		t.Errorf("parseURI() of a socket = %+v at %s, %v, want its path, without TLS", a, place, err)
	}
}

func TestURIsThatAreRefused(t *testing.T) {
	t.Parallel()
	uris.AreRefused(t, map[string]string{
		"postgres://h/d":                               "must begin with mysql://",
		"mysql://h/a%60b":                              "the database",
		"mysql://h/a.b":                                "the database",
		"mysql://h/tls=true":                           "parameters begin with a ?",
		"mysql://tcp(h)/d":                             "each host",
		"mysql://h/d?parseTime=true":                   "parameter parseTime is unknown",
		"mysql://h/d?allowAllFiles=true":               "parameter allowAllFiles is unknown",
		"mysql://h/d?sql_mode=":                        "parameter sql_mode has no value",
		"mysql://h/d?table=a%60b":                      "parameter table must be a name",
		"mysql://h/d?table=" + strings.Repeat("t", 58): "at most 57",
		"mysql://h/d?tls=preferred":                    "parameter tls must be",
		"mysql://h/d?tls=False":                        "parameter tls must be",
		"mysql://h/d?tls=skip-verify&tlsCA=x":          "tlsCA is for tls=true",
		"mysql://h/d?tlsCert=x":                        "tlsCert and tlsKey come together",
		"mysql://h/d?tls=false&tlsCert=x&tlsKey=y":     "tlsCert for TLS",
		"mysql://h/d?connectTimeout=0s":                "a duration above 0",
		"mysql://h/d?connectTimeout=61s":               "a duration above 0",
		"mysql://h/d?connectTimeout=2":                 "a duration above 0",
		"mysql://h/d?socket=/run/s":                    "beside no host",
		"mysql:///d?socket=s":                          "the path of a Unix socket",
		"mysql:///d?socket=/s&tls=true":                "no TLS on a Unix socket",
		"mysql://h/d?appName=%C3%A9":                   "printable ASCII",
		"mysql://h/d?appName=a:b":                      "printable ASCII",
	})
	_, err := Open(t.Context(), Options{URI: "mysql://h:0/d?table=1&maxConns=0", ServerSkew: -1, MaxConns: -1, AppName: "\n"})
	documenttest.Says(t, "Open() of many faults", err, nil, "each host", "parameter table", "parameter maxConns", "ServerSkew -1ns", "MaxConns -1", "AppName")
}

func TestOptionsThatContradictTheURIAreRefused(t *testing.T) {
	t.Parallel()
	const uri = "mysql://me:" + canary + "@localhost/d?table=b&serverSkew=1s"
	_, err := Open(t.Context(), Options{URI: uri, Table: "y", ServerSkew: time.Minute, Password: "other"})
	documenttest.Says(t, "Open()", err, nil, "table is given", "serverSkew 1s", "a password is given")
	if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "other") {
		t.Errorf("Open() = %v, want no password", err)
	}
	for _, parameter := range []string{"tlsCA=/no/such/file", "tlsCert=/no/such/file&tlsKey=/no/such/key", "tlsCA=uri_test.go"} {
		_, err = Open(t.Context(), Options{URI: "mysql://me:" + canary + "@h/d?" + parameter})
		name, _, _ := strings.Cut(parameter, "=")
		documenttest.Says(t, "Open() without its certificate", err, nil, "options: "+name)
		if strings.Contains(err.Error(), canary) {
			t.Errorf("Open() = %v, want no password", err)
		}
	}
}

func TestALedgerIsOpenedByItsScheme(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mysql", "mariadb"} {
		uri := name + "://me@localhost:1/d?table=leases"
		l, err := store.Open(t.Context(), uri, store.OpenOptions{ReadOnly: true, AppName: "leasectl", Getenv: func(name string) string {
			return map[string]string{"MYSQL_PWD": canary}[name]
		}})
		must(t, "Open()", err)
		own := l.(*Ledger)
		if own.String() != "mysql d.leases at localhost:1" || !(own.MayWrite("append") != nil) || own.address.Password != canary || own.address.appName != "leasectl" {
			t.Errorf("Open(%s) = %s, read only %v, as %s, want what the URI and the options say", uri, own, (own.MayWrite("append") != nil), own.address.appName)
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
	uris.Fuzz(f, "mysql://h/d?table=t", "mariadb://[::1]:1,h:2/d", "mysql:///d?socket=/run", "mysql://", "mysql://a?=&;", "mysql://h/%zz?tls=true", "postgres://a/b")
}
