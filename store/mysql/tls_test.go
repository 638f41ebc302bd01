package mysql

import (
	"fmt"
	"os"
	"os/user"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestTheServersCertificateIsVerified(t *testing.T) {
	t.Parallel()
	text := func(path string) string {
		b, err := os.ReadFile(path)
		must(t, "ReadFile()", err)
		return string(b)
	}
	ca, key := documenttest.Certificate(t)
	client, clientKey := documenttest.Certificate(t, "visitor")
	s := mysqlpeer.Start(t, mysqlpeer.Options{
		Files: map[string]string{"own.pem": text(ca), "own.key": text(key), "clients.pem": text(client)},
		Flags: []string{"--ssl-cert=own.pem", "--ssl-key=own.key", "--ssl-ca=clients.pem", "--require-secure-transport=1"},
	})
	root := "mysql://root@" + s.Addr() + "/jobs"
	visitor, as := strings.Replace(root, "root", "visitor", 1), "&tlsCert="+client+"&tlsKey="+clientKey
	for _, statement := range []string{"CREATE DATABASE jobs", "CREATE USER visitor REQUIRE X509", "GRANT ALL ON jobs.* TO visitor"} {
		execute(t, "root@tcp("+s.Addr()+")/?tls=skip-verify", statement)
	}
	for name, c := range map[string]struct {
		uri, fails string
		is         error
		level      store.Level
		says       string
	}{
		"verified":               {root + "?tls=true&tlsCA=" + ca, "", nil, store.LevelOK, "encrypted, and the server's certificate is verified"},
		"not verified":           {root + "?tls=skip-verify", "", nil, store.LevelWarn, "the server's certificate isn't verified (tls=skip-verify)"},
		"of no authority":        {root + "?tls=true", "certificate", nil, store.LevelOK, "is verified"},
		"of another authority":   {root + "?tls=true&tlsCA=" + client, "certificate", nil, store.LevelOK, "is verified"},
		"of another name":        {strings.Replace(root, "127.0.0.1", "localhost", 1) + "?tls=true&tlsCA=" + ca, "certificate", nil, store.LevelOK, "is verified"},
		"not encrypted":          {root, "1045", store.ErrDenied, store.LevelOK, "not encrypted, to this machine alone"},
		"the client's, too":      {visitor + "?tls=true&tlsCA=" + ca + as, "", nil, store.LevelOK, "is verified"},
		"the client's alone":     {visitor + "?tls=skip-verify" + as, "", nil, store.LevelWarn, "isn't verified"},
		"none of the client's":   {visitor + "?tls=true&tlsCA=" + ca, "1045", store.ErrDenied, store.LevelOK, "is verified"},
		"a client's of no trust": {visitor + "?tls=true&tlsCA=" + ca + "&tlsCert=" + ca + "&tlsKey=" + key, "trust the certificate of tlsCert", nil, store.LevelOK, "is verified"},
	} {
		t.Run(name, func(t *testing.T) {
			l := opened(t, Options{URI: c.uri})
			err := l.Init(within(t))
			if err == nil {
				err = l.Append(within(t), storetest.Grant("job", time.Now().UnixMilli()))
			}
			if c.fails == "" {
				must(t, "Append()", err)
			} else {
				wantOutcome(t, "Init()", err, outcome{c.is, true}, c.fails)
			}
			found, err := l.Examine(within(t))
			must(t, "Examine()", err)
			documenttest.Finds(t, found, store.CheckTLS, c.level, c.says)
		})
	}

	if text, remedy := opened(t, Options{URI: "mysql://db1.example.net/jobs?tls=false"}).secured(); remedy == "" || !strings.Contains(text, "not encrypted (tls=false)") {
		t.Errorf("secured() = %q, %q, want a warning", text, remedy)
	}
}

// On a Unix socket, the server may know users by the system's names for them, as it does by default.
func TestAUnixSocketLeadsToTheServer(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{})
	me, err := user.Current()
	must(t, "Current()", err)
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs", "CREATE USER other IDENTIFIED BY 'secret'", "GRANT ALL ON jobs.* TO other",
		fmt.Sprintf("CREATE OR REPLACE USER '%s'@localhost IDENTIFIED VIA unix_socket", me.Username), fmt.Sprintf("GRANT ALL ON jobs.* TO '%s'@localhost", me.Username))
	for seq, login := range []string{me.Username, "other:secret"} {
		l := initialised(t, Options{URI: "mysql://" + login + "@/jobs?socket=" + s.Data() + "/s"})
		must(t, "Append()", l.Append(within(t), storetest.Grant("job", int64(seq+1))))
		found, err := l.Examine(within(t))
		must(t, "Examine()", err)
		documenttest.Finds(t, found, store.CheckTLS, store.LevelOK, "not encrypted, to this machine alone")
		documenttest.Finds(t, found, CheckProxy, store.LevelOK, "there is none")
	}
	l := opened(t, Options{URI: "mysql://other:wrong@/jobs?socket=" + s.Data() + "/s"})
	documenttest.Says(t, "Init()", l.Init(within(t)), store.ErrDenied, "1045")
	l = opened(t, Options{URI: "mysql://other@/jobs?socket=/no/such"})
	documenttest.Says(t, "Init()", l.Init(within(t)), store.ErrNotStored, "/no/such")
}

func TestTheServerShowsTheProgramAndAsManyConnectionsAsTheURIAllows(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{Flags: []string{"--performance-schema=ON"}})
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs")
	l := initialised(t, Options{URI: uriOf(t, s.DSN()+"jobs") + "?maxConns=2&serverSkew=300ms&appName=our%20'jobs'"})
	const count = "SELECT count(*) FROM performance_schema.session_connect_attrs WHERE attr_name = 'program_name' AND attr_value = 'our ''jobs'''"
	var reached atomic.Bool
	documenttest.LendsFew(t, l, 2, func() (n int) {
		documenttest.Is(t, "count", past(t, s.DSN()).QueryRowContext(within(t), count).Scan(&n), nil)
		reached.CompareAndSwap(false, n == 2)
		return n
	})
	documenttest.Equal(t, "that there were two connections, while many statements wait", reached.Load(), true)
	now, err := l.Now(within(t))
	documenttest.Equal(t, fmt.Sprintf("the skew of %+v, %v", now, err), now.Skew, 300*time.Millisecond)
}
