package mysql

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestCertificatesAreRenewedOnDisk(t *testing.T) {
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
		Flags: []string{"--ssl-cert=own.pem", "--ssl-key=own.key", "--ssl-ca=clients.pem"},
	})
	put := func(name, by string) {
		must(t, "WriteFile()", os.WriteFile(filepath.Join(s.Data(), "db", name), []byte(text(by)), 0o600)) // It stays the server's.
	}
	restart := func(cert, key, clients string) {
		put("own.pem", cert)
		put("own.key", key)
		put("clients.pem", clients)
		s.Kill()
		s.Restart()
	}
	for _, statement := range []string{"CREATE DATABASE jobs", "CREATE USER visitor REQUIRE X509", "GRANT ALL ON jobs.* TO visitor"} {
		mysqlpeer.Exec(t, s.DSN(), statement)
	}
	at := documenttest.Renewable(t, ca, client, clientKey)
	l := initialised(t, Options{URI: "mysql://visitor@" + s.Addr() + "/jobs?tls=true&tlsCA=" + at[0] + "&tlsCert=" + at[1] + "&tlsKey=" + at[2]})
	ca, key = documenttest.Certificate(t)
	client, clientKey = documenttest.Certificate(t, "visitor")
	documenttest.GoesOn(t, l, func() {
		documenttest.Renew(t, at[0], ca)
		documenttest.Renew(t, at[1], client)
		documenttest.Renew(t, at[2], clientKey)
		restart(ca, key, client)
	})
	documenttest.GoesOn(t, l, func() { // What was whole last is used.
		documenttest.Renew(t, at[1], ca) // the key isn't written yet
		must(t, "Truncate()", os.Truncate(at[0], 100))
		restart(ca, key, client)
	})
	other, otherKey := documenttest.Certificate(t)
	restart(other, otherKey, client)
	err := l.Append(within(t), storetest.Grant("job", 1))
	documenttest.Says(t, "Append() to a server of another authority", err, store.ErrNotStored, "certificate", strings.Join(at, ", ")+" can't be read now", "tlsCert and tlsKey")
}

func TestALoginIsRenewedInTheFileOfTheURI(t *testing.T) {
	t.Parallel()
	s := mysqlpeer.Start(t, mysqlpeer.Options{})
	mysqlpeer.Exec(t, s.DSN(), "CREATE DATABASE jobs", "CREATE USER first IDENTIFIED BY 'secret'", "GRANT ALL ON jobs.* TO first", "CREATE USER second IDENTIFIED BY 'another'", "GRANT ALL ON jobs.* TO second")
	at := filepath.Join(t.TempDir(), "uri")
	write := func(login string) string {
		uri := "mysql://" + login + "@" + s.Addr() + "/jobs"
		must(t, "WriteFile()", os.WriteFile(at, []byte(uri+"\n"), 0o600))
		return uri
	}
	l, err := store.Open(t.Context(), write("first:secret"), store.OpenOptions{File: at})
	must(t, "Open()", err)
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	must(t, "Init()", l.(*Ledger).Init(within(t)))
	documenttest.GoesOn(t, l, func() {
		mysqlpeer.Exec(t, s.DSN(), "DROP USER first")
		write("second:another")
		s.Kill()
		s.Restart()
	})
}
