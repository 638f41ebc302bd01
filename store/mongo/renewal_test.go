package mongo

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// together writes a certificate and its key into one file, as the driver wants them.
func together(t *testing.T, cert, key string) string {
	t.Helper()
	a, err := os.ReadFile(cert)
	b, err2 := os.ReadFile(key)
	must(t, "ReadFile()", errors.Join(err, err2))
	path := t.TempDir() + "/both.pem"
	must(t, "WriteFile()", os.WriteFile(path, append(a, b...), 0o600))
	return path
}

func TestCertificatesAreRenewedOnDisk(t *testing.T) {
	t.Parallel()
	peer, err := url.Parse(mongopeer.URI(t))
	must(t, "Parse()", err)
	ca, key := documenttest.Certificate(t)
	client, clientKey := documenttest.Certificate(t, "visitor")
	f := documenttest.NewFront(t, peer.Host, ca, key, client)
	at := documenttest.Renewable(t, ca, together(t, client, clientKey))
	l := open(t, Options{URI: "mongodb://" + f.Addr + "/" + database(t, dial(t, mongopeer.URI(t))) + "?serverSelectionTimeoutMS=1000&tlsCAFile=" + at[0] + "&tlsCertificateKeyFile=" + at[1]})
	must(t, "Init()", l.Init(within(t, patience)))
	ca, key = documenttest.Certificate(t)
	documenttest.GoesOn(t, l, func() { // the authority alone
		documenttest.Renew(t, at[0], ca)
		f.Renew(ca, key, client)
	})
	client, clientKey = documenttest.Certificate(t, "visitor")
	documenttest.GoesOn(t, l, func() { // the client's certificate alone
		documenttest.Renew(t, at[1], together(t, client, clientKey))
		f.Renew(ca, key, client)
	})
	documenttest.GoesOn(t, l, func() { // What was whole last is used.
		must(t, "Remove()", os.Remove(at[0]))
		must(t, "Truncate()", os.Truncate(at[1], 100))
		f.Cut()
	})
	ca, key = documenttest.Certificate(t)
	f.Renew(ca, key, client)
	documenttest.ComesToSay(t, "Init() at a server of another authority", func(ctx context.Context, _ int) error { return l.Init(ctx) }, at[0]+", "+at[1]+" can't be read now")
	documenttest.Renew(t, at[0], ca)
	documenttest.Renew(t, at[1], together(t, client, clientKey))
	documenttest.Comes(t, "Init() at last", func(ctx context.Context, _ int) error { return l.Init(ctx) })
}

// The driver would take half of it for the whole, by each of its names.
func TestHalfAFileOfAuthoritiesIsNotUsed(t *testing.T) {
	t.Parallel()
	ca, _ := documenttest.Certificate(t)
	text, err := os.ReadFile(ca)
	must(t, "ReadFile()", err)
	for _, name := range []string{"tlsCAFile", "sslCertificateAuthorityFile"} {
		at := documenttest.Renewable(t, ca)[0]
		e, err := encryptionOf("mongodb://db1/?" + name + "=" + at)
		must(t, "encryptionOf()", err)
		was := e.Now().RootCAs
		must(t, "WriteFile()", os.WriteFile(at, append(text, text[:len(text)/2]...), 0o600))
		if now := e.Now(); !now.RootCAs.Equal(was) || !strings.Contains(e.Explain(errors.New("no")).Error(), "isn't whole") {
			t.Errorf("%s: half a file: %v", name, e.Explain(errors.New("no")))
		}
	}
}
