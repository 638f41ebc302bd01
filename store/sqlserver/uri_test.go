//go:build sqlserver

package sqlserver

import (
	"context"
	"crypto/tls"
	"reflect"
	"testing"
	"time"

	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/store/storekit"
)

const canary = documenttest.Canary

const start = "sqlserver://h/d?"

// uris are those of the store.
var uris = documenttest.URIs{
	Scheme: "sqlserver", Other: "sqlserver", Redact: Redact,
	Parse: func(uri string) (whole bool, err error) {
		a, err := parseURI(uri)
		return len(a.Hosts) > 0 && len(a.Hosts) == len(a.Ports) && a.Database != "" && a.encrypt != "", err
	},
	Open:         func(ctx context.Context, uri string) (store.Ledger, error) { return Open(ctx, Options{URI: uri}) },
	Certificates: map[string]string{"tlsCA=/no/such/file": "options: tlsCA", "tlsCA=uri_test.go": "options: tlsCA"},
	Variable:     "SQLCMDPASSWORD",
	Name:         "sqlserver dbo.leases in d at localhost:1",
	Login: func(l store.Ledger) (password, app string) {
		return l.(*Ledger).address.Password, l.(*Ledger).address.AppName
	},
	Refused: map[string]string{
		"mssql://h/d":                                        "must begin with sqlserver://",
		`sqlserver://h\SQLEXPRESS/d`:                         "each host",
		"sqlserver://h/a%5Db":                                "the database",
		"sqlserver://h?database=d":                           "the database is missing",
		start + "database=d":                                 "parameter database is unknown",
		start + "applicationIntent=ReadOnly":                 "a readable secondary lags",
		start + "failoverpartner=x":                          "parameter failoverpartner is unknown",
		start + "fedauth=ActiveDirectoryDefault":             "parameter fedauth is unknown",
		start + "table=a%5Db":                                "parameter table must be a name",
		start + "instance=a%5Cb":                             "parameter instance must be the name of an instance",
		"sqlserver://h:1433,i/d?instance=x":                  "instance is for one host without a port",
		"sqlserver://h:5/d?instance=x":                       "instance is for one host without a port",
		start + "encrypt=disable":                            "parameter encrypt must be strict, true or false",
		start + "encrypt=True":                               "parameter encrypt must be strict, true or false",
		start + "trustServerCertificate=yes":                 "must be true or false",
		start + "trustServerCertificate=true&tlsCA=/x":       "trustServerCertificate verifies nothing",
		start + "trustServerCertificate=true&encrypt=strict": "trustServerCertificate verifies nothing",
		start + "encrypt=false&tlsCA=/x":                     "are for encrypt=true",
		start + "hostNameInCertificate=a%20b":                "must be the name of a host",
	},
}

func TestParseURI(t *testing.T) {
	t.Parallel()
	type at = storekit.DatabaseURI
	for uri, want := range map[string]struct {
		address
		host, port, shown string
	}{
		"sqlserver://db.example/jobs":                         {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, encrypt: "true"}, "db.example", "1433", "sqlserver://db.example/jobs"},
		"sqlserver://db.example:1434/jobs/":                   {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, encrypt: "true"}, "db.example", "1434", "sqlserver://db.example:1434/jobs/"},
		"sqlserver://me@localhost/jobs":                       {address{Address: sqldb.Address{DatabaseURI: at{User: "me", Database: "jobs"}}, encrypt: "true"}, "localhost", "1433", "sqlserver://***@localhost/jobs"},
		"sqlserver://me:p%40ss%3A%2F@127.0.0.1/my%20jobs":     {address{Address: sqldb.Address{DatabaseURI: at{User: "me", Password: "p@ss:/", Database: "my jobs"}}, encrypt: "true"}, "127.0.0.1", "1433", "sqlserver://me:***@127.0.0.1/my%20jobs"},
		"sqlserver://CORP%5Cme:x@[::1]:7/jobs":                {address{Address: sqldb.Address{DatabaseURI: at{User: `CORP\me`, Password: "x", Database: "jobs"}}, encrypt: "true"}, "::1", "7", "sqlserver://CORP%5Cme:***@[::1]:7/jobs"},
		"sqlserver://h/jobs?encrypt=strict":                   {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, encrypt: "strict"}, "h", "1433", "sqlserver://h/jobs?encrypt=strict"},
		"sqlserver://h/jobs?trustServerCertificate=true":      {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, encrypt: "true", trust: true}, "h", "1433", "sqlserver://h/jobs?trustServerCertificate=true"},
		"sqlserver://h/jobs?table=leases_2&schema=ops":        {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}, Schema: "ops", Table: "leases_2"}, encrypt: "true"}, "h", "1433", "sqlserver://h/jobs?table=leases_2&schema=ops"},
		"sqlserver://h/jobs?instance=SQL$1&encrypt=false":     {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}, At: `h\SQL$1`}, instance: "SQL$1", encrypt: "false"}, "h", "1433", "sqlserver://h/jobs?instance=SQL$1&encrypt=false"},
		"sqlserver://h/jobs?serverSkew=1.5s&maxConns=9&":      {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}, Skew: 1500 * time.Millisecond, MaxConns: 9}, encrypt: "true"}, "h", "1433", "sqlserver://h/jobs?serverSkew=1.5s&maxConns=9&"},
		"sqlserver://h/jobs?applicationIntent=ReadWrite":      {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, encrypt: "true"}, "h", "1433", "sqlserver://h/jobs?applicationIntent=ReadWrite"},
		"sqlserver://h/jobs?connectTimeout=7s&appName=a%20b":  {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}, ConnectTimeout: 7 * time.Second, AppName: "a b"}, encrypt: "true"}, "h", "1433", "sqlserver://h/jobs?connectTimeout=7s&appName=a%20b"},
		"sqlserver://h/jobs?tlsCA=/a&hostNameInCertificate=c": {address{Address: sqldb.Address{DatabaseURI: at{Database: "jobs"}}, encrypt: "true", ca: "/a", certificateName: "c"}, "h", "1433", "sqlserver://h/jobs?tlsCA=/a&hostNameInCertificate=c"},
	} {
		want.Hosts, want.Ports = []string{want.host}, []string{want.port}
		if got, err := parseURI(uri); err != nil || !reflect.DeepEqual(got, want.address) {
			t.Errorf("parseURI(%q) = %+v, %v, want %+v", uri, got, err, want.address)
		}
		documenttest.Equal(t, "Redact("+uri+")", Redact(uri), want.shown)
	}
	a, err := parseURI("sqlserver://me@db1,[::1]:7/jobs")
	if place := a.Place(&form); err != nil || place != "db1:1433,[::1]:7" {
		t.Errorf("parseURI() of two hosts = %+v at %s, %v, want both", a, place, err)
	}
	a, err = parseURI("sqlserver://me@db1/jobs?instance=SQLEXPRESS")
	if place := a.Place(&form); err != nil || place != `db1\SQLEXPRESS` {
		t.Errorf("parseURI() of an instance = %+v at %s, %v, want its name", a, place, err)
	}
}

// The driver sends nothing twice, asks for no readable secondary, and verifies the server's name unless it is told not to.
func TestTheDriverIsConfiguredAsTheURISays(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]struct {
		encryption msdsn.Encryption
		skip       bool
		name       string
		port       uint64
		instance   string
	}{
		"sqlserver://h/d":                              {msdsn.EncryptionRequired, false, "h", 1433, ""},
		"sqlserver://h:5/d?encrypt=strict":             {msdsn.EncryptionStrict, false, "h", 5, ""},
		"sqlserver://h/d?hostNameInCertificate=c":      {msdsn.EncryptionRequired, false, "c", 1433, ""},
		"sqlserver://h/d?trustServerCertificate=true":  {msdsn.EncryptionRequired, true, "h", 1433, ""},
		"sqlserver://h/d?encrypt=false":                {msdsn.EncryptionOff, true, "h", 1433, ""},
		"sqlserver://h/d?instance=X&encrypt=true":      {msdsn.EncryptionRequired, false, "h", 0, "X"},
		"sqlserver://h/d?trustServerCertificate=false": {msdsn.EncryptionRequired, false, "h", 1433, ""},
		"sqlserver://h/d?applicationIntent=readwrite":  {msdsn.EncryptionRequired, false, "h", 1433, ""},
	} {
		c := opened(t, Options{URI: uri}).config(0)
		if c.Encryption != want.encryption || c.TLSConfig.InsecureSkipVerify != want.skip || c.TLSConfig.ServerName != want.name || c.Port != want.port || c.Instance != want.instance {
			t.Errorf("config(%s) = %+v with the server %q, verified %v, want %+v", uri, c, c.TLSConfig.ServerName, !c.TLSConfig.InsecureSkipVerify, want)
		}
		if !c.DisableRetry || c.ReadOnlyIntent || c.ColumnEncryption || c.LogFlags != 0 || c.TLSConfig.MinVersion < tls.VersionTLS12 || c.Database != "d" {
			t.Errorf("config(%s) = %+v, want no retry, no intent to read, no log, and TLS 1.2 or later", uri, c)
		}
	}
}

func TestURIs(t *testing.T) { uris.Run(t) }

func FuzzURINeverPanicsNorLeaks(f *testing.F) {
	uris.Fuzz(f, "sqlserver://h/d?table=t", "sqlserver://[::1]:1,h:2/d", "sqlserver://h/d?instance=X", "sqlserver://", "sqlserver://a?=&;", "sqlserver://h/%zz?encrypt=true", "mysql://a/b")
}
