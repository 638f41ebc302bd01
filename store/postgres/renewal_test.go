package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// renew replaces the server's certificate, its key and the authority of its clients, by restarting it.
func (s secure) renew(t *testing.T, cert, key, clients string) {
	t.Helper()
	for name, by := range map[string]string{"own.pem": cert, "own.key": key, "clients.pem": clients} {
		text, err := os.ReadFile(by)
		must(t, "ReadFile()", err)
		must(t, "WriteFile()", os.WriteFile(filepath.Join(s.Data(), "db", name), text, 0o600)) // It stays the server's.
	}
	s.Kill()
	s.Restart()
}

func TestCertificatesAreRenewedOnDisk(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"verify-full", "verify-ca"} {
		s := startSecure(t)
		ca, key := documenttest.Certificate(t)
		client, clientKey := documenttest.Certificate(t, "visitor")
		at := documenttest.Renewable(t, s.ca, s.cert, s.key)
		l := initialised(t, Options{URI: s.as("visitor", "sslmode="+mode+"&sslrootcert="+at[0]+"&sslcert="+at[1]+"&sslkey="+at[2]), Table: newTable()})
		documenttest.GoesOn(t, l, func() {
			documenttest.Renew(t, at[0], ca)
			documenttest.Renew(t, at[1], client)
			documenttest.Renew(t, at[2], clientKey)
			s.renew(t, ca, key, client)
		})
	}
}

// While a file can't be read, what it had is used, and the error of a server with another authority names it.
func TestAFileThatIsNotWholeIsNotUsed(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	ca, key := documenttest.Certificate(t)
	at := documenttest.Renewable(t, s.ca)[0]
	text, err := os.ReadFile(ca)
	must(t, "ReadFile()", err)
	l := initialised(t, Options{URI: s.as("secret:secret", "sslmode=verify-full&sslrootcert="+at), Table: newTable()})
	documenttest.GoesOn(t, l, func() {
		must(t, "WriteFile()", os.WriteFile(at, append(text, text[:len(text)/2]...), 0o600))
		s.Kill()
		s.Restart()
	})
	must(t, "Remove()", os.Remove(at))
	s.renew(t, ca, key, s.cert)
	documenttest.Says(t, "Append() to a server of another authority", l.Append(within(t), storetest.Grant("job", 1)), store.ErrNotStored, at+" can't be read now, and what was read before is used", "no such file")
	documenttest.Renew(t, at, ca)
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
}

func TestAPasswordIsRenewedInItsFile(t *testing.T) {
	s := startSecure(t)
	at := filepath.Join(t.TempDir(), "pgpass")
	write := func(password string) {
		must(t, "WriteFile()", os.WriteFile(at, []byte("*:*:*:secret:"+password+"\n"), 0o600))
	}
	write("secret")
	t.Setenv("PGPASSFILE", at)
	l := initialised(t, Options{URI: s.as("secret", "sslmode=require"), Table: newTable()})
	documenttest.GoesOn(t, l, func() {
		write("another")
		_, err := past(t, s.URI()).ExecContext(within(t), "ALTER ROLE secret PASSWORD 'another'")
		must(t, "ALTER ROLE", err)
		s.Kill()
		s.Restart()
	})
	documenttest.GoesOn(t, l, func() {
		must(t, "Remove()", os.Remove(at))
		s.Kill()
		s.Restart()
	})
}

// Vault gives another user with each password.
func TestALoginIsRenewedInTheFileOfTheURI(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	at := filepath.Join(t.TempDir(), "uri")
	write := func(login string) string {
		uri := s.as(login, "sslmode=require")
		must(t, "WriteFile()", os.WriteFile(at, []byte(uri+"\n"), 0o600))
		return uri
	}
	l, err := store.Open(t.Context(), write("secret:secret"), store.OpenOptions{File: at})
	must(t, "Open()", err)
	t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
	must(t, "Init()", l.(*Ledger).Init(within(t)))
	documenttest.GoesOn(t, l, func() {
		_, err := past(t, s.URI()).ExecContext(within(t), "CREATE ROLE another LOGIN SUPERUSER PASSWORD 'another'; ALTER ROLE secret NOLOGIN")
		must(t, "CREATE ROLE", err)
		write("another:another")
		s.Kill()
		s.Restart()
	})
	must(t, "WriteFile()", os.WriteFile(at, []byte("postgres://another:s3cr@t@"), 0o600))
	_, err = past(t, s.URI()).ExecContext(within(t), "ALTER ROLE another NOLOGIN")
	must(t, "ALTER ROLE", err)
	s.Kill()
	s.Restart()
	documenttest.ComesToSay(t, "Append() by the user of before", func(ctx context.Context, _ int) error {
		err := l.Append(ctx, storetest.Grant("job", 1))
		if err != nil && strings.Contains(err.Error(), "s3cr@t") {
			t.Errorf("Append() shows a password: %v", err)
		}
		return err
	}, at+" can't be read now", "not permitted to log in")
}

// With libpq's sslmode=require the server is verified by the default file of authorities, if there is one: not less when it is away for
// a moment.
func TestNothingIsTrustedWhileTheDefaultAuthoritiesAreAway(t *testing.T) {
	s := startSecure(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	root := filepath.Join(home, ".postgresql", "root.crt")
	must(t, "MkdirAll()", os.MkdirAll(filepath.Dir(root), 0o700))
	text, err := os.ReadFile(s.ca)
	must(t, "ReadFile()", err)
	must(t, "WriteFile()", os.WriteFile(root, text, 0o600))
	ledgers := map[string]*Ledger{}
	for _, mode := range []string{"require", "verify-ca", "verify-full"} {
		ledgers[mode] = initialised(t, Options{URI: s.as("secret:secret", "sslmode="+mode), Table: newTable()})
		must(t, "Append()", ledgers[mode].Append(within(t), storetest.Grant("job", 1)))
	}
	ca, key := documenttest.Certificate(t)
	s.renew(t, ca, key, s.cert)
	must(t, "Rename()", os.Rename(root, root+".new"))
	for mode, l := range ledgers {
		said := false
		for seq := range int64(3) {
			err := l.Append(within(t), storetest.Grant("job", 2+seq))
			if err == nil {
				t.Errorf("%s: a certificate that no authority has signed was accepted", mode)
			}
			said = said || strings.Contains(fmt.Sprint(err), "a file is gone by which the server was verified")
		}
		if !said {
			t.Errorf("%s: the errors don't say that the authorities of before are trusted, and why", mode)
		}
	}
}

// A file in the working directory isn't what sslrootcert=system means.
func TestTheSystemsAuthoritiesAreNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, "WriteFile()", os.WriteFile("system", []byte("none"), 0o600))
	l, err := Open(t.Context(), Options{URI: "postgres://u:p@db.invalid/d?sslmode=verify-full&sslrootcert=system"})
	must(t, "Open()", err)
	must(t, "Close()", l.Close(t.Context()))
}
