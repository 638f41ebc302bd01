package postgres

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/postgrespeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// secure is a server with TLS and a Unix socket, and the certificate of its role visitor.
type secure struct {
	*postgrespeer.Server

	ca, cert, key string
}

func startSecure(t *testing.T) (s secure) {
	t.Helper()
	text := func(path string) string {
		b, err := os.ReadFile(path)
		must(t, "ReadFile()", err)
		return string(b)
	}
	var serversKey string
	s.ca, serversKey = documenttest.Certificate(t)
	s.cert, s.key = documenttest.Certificate(t, "visitor")
	s.Server = postgrespeer.Start(t, postgrespeer.Options{
		Files:    map[string]string{"own.pem": text(s.ca), "own.key": text(serversKey), "clients.pem": text(s.cert)},
		Settings: []string{"ssl=on", "ssl_cert_file=own.pem", "ssl_key_file=own.key", "ssl_ca_file=clients.pem", "unix_socket_directories=."},
		Access: []string{
			"local all all trust", "hostssl all visitor 127.0.0.1/32 cert", "hostnossl all visitor 127.0.0.1/32 reject", "hostnossl all plain 127.0.0.1/32 trust", "host all plain 127.0.0.1/32 reject",
		},
	})
	postgrespeer.Exec(t, s.URI(), "CREATE ROLE plain LOGIN SUPERUSER", "CREATE ROLE visitor LOGIN SUPERUSER", "CREATE ROLE secret LOGIN SUPERUSER PASSWORD 'secret'")
	return s
}

// as is the URI of the database for a user.
func (s secure) as(user, parameters string) string {
	return "postgres://" + user + "@" + s.Addr() + "/postgres?" + parameters
}

func TestTheServersCertificateIsVerified(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	const secret, verified = "secret:secret", "encrypted, and the server's certificate is verified"
	ca, client := "&sslrootcert="+s.ca, "&sslcert="+s.cert+"&sslkey="+s.key
	elsewhere := func(uri string) string { return strings.Replace(uri, "127.0.0.1", "localhost", 1) }
	for _, c := range []struct {
		uri       string
		encrypted bool
		fails     string
		is        error
		says      string
	}{
		{s.as(secret, "sslmode=disable"), false, "", nil, "not encrypted, to this machine alone"},
		{s.as(secret, "sslmode=allow"), false, "", nil, "encrypted only if the server demands it"},
		{s.as("visitor", "sslmode=allow"+client), true, "", nil, "encrypted only if the server demands it"},
		{s.as(secret, "sslmode=prefer"), true, "", nil, "encrypted if the server can"},
		{s.as("plain", "sslmode=prefer"), false, "", nil, "encrypted if the server can"},
		{s.as("plain", "sslmode=require"), false, "SSL encryption", store.ErrDenied, "isn't verified (sslmode=require)"},
		{s.as(secret, "sslmode=require"), true, "", nil, "isn't verified (sslmode=require)"},
		{s.as(secret, "sslmode=require"+ca), true, "", nil, "but the name in the server's certificate isn't verified"},
		{s.as(secret, "sslmode=require&sslrootcert="+s.cert), false, "certificate signed by unknown authority", nil, "the name in"},
		{s.as(secret, "sslmode=require&sslrootcert=system"), false, "certificate signed by unknown authority", nil, verified},
		{elsewhere(s.as(secret, "sslmode=verify-ca"+ca)), true, "", nil, "but the name in the server's certificate isn't verified"},
		{s.as(secret, "sslmode=verify-full"+ca), true, "", nil, verified},
		{s.as(secret, "sslmode=verify-full"), false, "certificate signed by unknown authority", nil, verified},
		{elsewhere(s.as(secret, "sslmode=verify-full"+ca)), false, "certificate", nil, verified},
		{strings.Replace(s.as(secret, "sslmode=verify-full"+ca), "@", "@"+elsewhere(s.Addr())+",", 1), true, "", nil, verified},
		{s.as("visitor", "sslmode=verify-full"+ca+client), true, "", nil, verified},
		{s.as("visitor", "sslmode=verify-full"+ca), false, "requires a valid client certificate", store.ErrDenied, verified},
		{s.as(secret, "sslmode=require&channel_binding=require"), true, "", nil, ""},
		{s.as(secret, "sslmode=allow&channel_binding=require"), true, "", nil, ""},
		{s.as("postgres", "sslmode=require&channel_binding=require"), false, "channel binding required", nil, ""},
		{s.as("plain", "sslmode=prefer&channel_binding=require"), false, "channel binding required", store.ErrDenied, ""},
	} {
		l := opened(t, Options{URI: c.uri, Table: newTable()})
		err := l.Init(within(t))
		if c.fails == "" {
			must(t, "Init() at "+c.uri, err)
			must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
			var encrypted bool
			must(t, "pg_stat_ssl", l.db.QueryRowContext(within(t), "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(&encrypted))
			documenttest.Equal(t, "encryption of "+c.uri, encrypted, c.encrypted)
		} else {
			documenttest.Says(t, "Init() at "+c.uri, err, store.ErrNotStored, c.fails)
			documenttest.Sentinel(t, "Init() at "+c.uri, err, c.is)
		}
		found, err := l.Examine(within(t))
		must(t, "Examine()", err)
		documenttest.Finds(t, found, store.CheckTLS, store.LevelOK, c.says)
	}
}

func TestWarningsOfTLSFitWhatTheDriverDoes(t *testing.T) {
	t.Parallel()
	ca, key := documenttest.Certificate(t)
	for parameters, want := range map[string]string{
		"sslmode=disable": "not encrypted (sslmode=disable)", "sslmode=require": "certificate isn't verified (sslmode=require)", "sslmode=verify-ca": "the name in",
		"sslmode=require&sslrootcert=" + ca: "the name in", "sslmode=verify-full": "", "sslmode=verify-ca&sslrootcert=system": "", "sslrootcert=" + ca: "",
	} {
		for _, hosts := range []string{"db1.example.net", "%2Frun,db1.example.net"} {
			text, remedy := opened(t, Options{URI: "postgres://" + hosts + "/d?" + parameters}).secured()
			if (remedy == "") != (want == "") || !strings.Contains(text, want) {
				t.Errorf("secured() with %s = %q, %q, want a warning, if any, with %q", parameters, text, remedy, want)
			}
		}
	}
	_, err := Open(t.Context(), Options{URI: "postgres://h/d?sslcert=/no/such/cert&sslkey=" + key})
	documenttest.Says(t, "Open() without its certificate", err, nil, "open /no/such/cert")
}

// The driver ends what is given up over another connection, and listens on one while it is idle.
func TestStatementsAreGivenUpAndHintsComeByEachWayToTheServer(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	folder, port := t.TempDir(), s.Addr()[strings.LastIndexByte(s.Addr(), ':')+1:]
	must(t, "Symlink()", os.Symlink(s.Data()+"/db/.s.PGSQL."+port, folder+"/.s.PGSQL.5432"))
	for uri, says := range map[string]string{
		s.as("visitor", "sslmode=verify-full&sslrootcert="+s.ca+"&sslcert="+s.cert+"&sslkey="+s.key): "encrypted, and",
		"postgres://visitor@/postgres?sslmode=verify-full&host=" + folder:                            "not encrypted, to this machine alone",
		"postgres://visitor@" + url.PathEscape(s.Data()+"/db") + ":" + port + "/postgres":            "not encrypted, to this machine alone",
	} {
		table := newTable()
		l := initialised(t, Options{URI: uri, Table: table})
		told := hints(t, s.URI(), l)
		done := storetest.Grant("job", 1)
		done.Kind, done.WindowStart = store.KindRelease, done.WindowEnd
		must(t, "Append()", l.Append(within(t), done))
		select {
		case got := <-told:
			documenttest.Equal(t, "hint at "+uri, got, "job")
		case <-within(t).Done():
			t.Errorf("no hint came at %s", uri)
		}
		other, err := past(t, s.URI()).BeginTx(within(t), nil)
		must(t, "BeginTx()", err)
		_, err = other.ExecContext(within(t), "LOCK TABLE "+table)
		must(t, "LOCK", err)
		if _, _, err = l.Tail(documenttest.Within(t, 200*time.Millisecond), "job", 1); err == nil {
			t.Errorf("Tail() of a table that is locked = nil at %s, want it given up", uri)
		}
		awaits(t, s.URI(), "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%"+table+"%' AND state = 'active' AND pid <> pg_backend_pid()", 0)
		must(t, "Rollback()", other.Rollback())
		found, err := l.Examine(within(t))
		must(t, "Examine()", err)
		documenttest.Finds(t, found, store.CheckTLS, store.LevelOK, says)
		documenttest.FindsNoMore(t, found)
	}
}

func TestTheServerShowsTheProgramAndAsManyConnectionsAsTheURIAllows(t *testing.T) {
	t.Parallel()
	direct, name := postgrespeer.Shared(t), newTable()
	r := &relay{delay: 30 * time.Millisecond}
	l := initialised(t, Options{URI: r.through(t, direct) + "&maxConns=2&serverSkew=300ms&schema=" + name + "&application_name=" + name + "%20%27%5C"})
	count := fmt.Sprintf(`SELECT count(*) FROM pg_stat_activity WHERE application_name = '%s ''\'`, name)
	var reached atomic.Bool
	documenttest.LendsFew(t, l, 2, func() (n int) {
		documenttest.Is(t, "count", past(t, direct).QueryRowContext(within(t), count).Scan(&n), nil)
		reached.CompareAndSwap(false, n == 2)
		return n
	})
	documenttest.Equal(t, "that there were two connections, while many statements wait", reached.Load(), true)
	now, err := l.Now(within(t))
	documenttest.Equal(t, fmt.Sprintf("the skew of %+v, %v", now, err), now.Skew, 300*time.Millisecond)
}
