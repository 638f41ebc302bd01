package mysql

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

// uris are those of the store.
var uris = documenttest.URIs{
	Scheme: "mysql", Other: "mariadb", Redact: Redact,
	Parse: func(uri string) (whole bool, err error) {
		a, err := parseURI(uri)
		return (len(a.Hosts) > 0 || a.Socket != "") && len(a.Hosts) == len(a.Ports) && a.Database != "" && a.tls != "", err
	},
	Open:         func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) },
	Certificates: map[string]string{"tlsCA=/no/such/file": "options: tlsCA", "tlsCert=/no/such/file&tlsKey=/no/such/key": "options: tlsCert", "tlsCA=uri_test.go": "options: tlsCA"},
	Variable:     "MYSQL_PWD",
	Name:         "mysql d.leases at localhost:1",
	Login: func(l store.Ledger) (password, app string) {
		return l.(*Ledger).address.Password, l.(*Ledger).address.AppName
	},
	Refused: map[string]string{
		"postgres://h/d":                           "must begin with mysql://",
		"mysql://h/a%60b":                          "the database",
		"mysql://h/a.b":                            "the database",
		"mysql://h/tls=true":                       "parameters begin with a ?",
		"mysql://tcp(h)/d":                         "each host",
		"mysql://h/d?parseTime=true":               "parameter parseTime is unknown",
		"mysql://h/d?allowAllFiles=true":           "parameter allowAllFiles is unknown",
		"mysql://h/d?sql_mode=":                    "parameter sql_mode has no value",
		"mysql://h/d?table=a%60b":                  "parameter table must be a name",
		"mysql://h/d?tls=preferred":                "parameter tls must be",
		"mysql://h/d?tls=False":                    "parameter tls must be",
		"mysql://h/d?tls=skip-verify&tlsCA=x":      "tlsCA is for tls=true",
		"mysql://h/d?tlsCert=x":                    "tlsCert and tlsKey come together",
		"mysql://h/d?tls=false&tlsCert=x&tlsKey=y": "tlsCert for TLS",
		"mysql://h/d?socket=/run/s":                "beside no host",
		"mysql:///d?socket=s":                      "the path of a Unix socket",
		"mysql:///d?socket=/s&tls=true":            "no TLS on a Unix socket",
	},
}

func TestParseURI(t *testing.T) {
	t.Parallel()
	type at = storekit.DatabaseURI
	for uri, want := range map[string]struct {
		address
		host, port, shown string
	}{
		"mysql://db.example/jobs":                     {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, tls: "true"}, "db.example", "3306", "mysql://db.example/jobs"},
		"mariadb://db.example:3307/jobs/":             {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, tls: "true"}, "db.example", "3307", "mariadb://db.example:3307/jobs/"},
		"mysql://me@localhost/jobs":                   {address{Address: sqldb.Address{DatabaseURI: at{User: "me", Database: "jobs"}}, tls: "false"}, "localhost", "3306", "mysql://***@localhost/jobs"},
		"mysql://me:p%40ss%3A%2F@127.0.0.1/my%20jobs": {address{Address: sqldb.Address{DatabaseURI: at{User: "me", Password: "p@ss:/", Database: "my jobs"}}, tls: "false"}, "127.0.0.1", "3306", "mysql://me:***@127.0.0.1/my%20jobs"},
		"mysql://a%2Fb:x@[::1]:7/jobs":                {address{Address: sqldb.Address{DatabaseURI: at{User: "a/b", Password: "x", Database: "jobs"}}, tls: "false"}, "::1", "7", "mysql://a%2Fb:***@[::1]:7/jobs"},
		"mysql://me:a:b@h/jobs?tls=skip-verify":       {address{Address: sqldb.Address{DatabaseURI: at{User: "me", Password: "a:b", Database: "jobs"}}, tls: "skip-verify"}, "h", "3306", "mysql://me:***@h/jobs?tls=skip-verify"},
		"mysql://h/jobs?table=leases_2&tls=false":     {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}, Table: "leases_2"}, tls: "false"}, "h", "3306", "mysql://h/jobs?table=leases_2&tls=false"},
		"mysql://h/jobs?serverSkew=1.5s&maxConns=9&":  {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}, Skew: 1500 * time.Millisecond, MaxConns: 9}, tls: "true"}, "h", "3306", "mysql://h/jobs?serverSkew=1.5s&maxConns=9&"},
		"mysql://h/jobs?connectTimeout=7s&appName=a%20b": {
			address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}, ConnectTimeout: 7 * time.Second, AppName: "a b"}, tls: "true"}, "h", "3306", "mysql://h/jobs?connectTimeout=7s&appName=a%20b",
		},
		"mysql://h/jobs?tlsCA=/a/b.pem&tlsCert=c&tlsKey=d": {
			address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, tls: "true", ca: "/a/b.pem", cert: "c", key: "d"}, "h", "3306", "mysql://h/jobs?tlsCA=/a/b.pem&tlsCert=c&tlsKey=d",
		},
	} {
		want.Hosts, want.Ports = []string{want.host}, []string{want.port}
		if got, err := parseURI(uri); err != nil || !reflect.DeepEqual(got, want.address) {
			t.Errorf("parseURI(%q) = %+v, %v, want %+v", uri, got, err, want.address)
		}
		documenttest.Equal(t, "Redact("+uri+")", Redact(uri), want.shown)
	}
	a, err := parseURI("mysql://me@127.0.0.1,[::1]:7,localhost:8/jobs")
	if place := a.Place(&form); err != nil || place != "127.0.0.1:3306,[::1]:7,localhost:8" || a.tls != tlsOff {
		t.Errorf("parseURI() of three hosts = %+v at %s, %v, want all of them, without TLS", a, place, err)
	}
	if a, err := parseURI("mysql://me@127.0.0.1,other/jobs"); err != nil || a.tls != tlsVerify {
		t.Errorf("parseURI() of two hosts, one elsewhere = %+v, %v, want TLS", a, err)
	}
	a, err = parseURI("mysql:///jobs?socket=/run/mysqld/mysqld.sock")
	if place := a.Place(&form); err != nil || place != "/run/mysqld/mysqld.sock" || a.tls != tlsOff {
		t.Errorf("parseURI() of a socket = %+v at %s, %v, want its path, without TLS", a, place, err)
	}
}

func TestURIs(t *testing.T) { uris.Run(t) }

func FuzzURINeverPanicsNorLeaks(f *testing.F) {
	uris.Fuzz(f, "mysql://h/d?table=t", "mariadb://[::1]:1,h:2/d", "mysql:///d?socket=/run", "mysql://", "mysql://a?=&;", "mysql://h/%zz?tls=true", "postgres://a/b")
}
