package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	natsio "github.com/nats-io/nats.go"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/natspeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// The system's authorities know no certificate of a test. So the application names those to trust here, and the environment in
// ./leasectl.
func TestOverTLSTheServersAreChecked(t *testing.T) {
	t.Parallel()
	cert, key := documenttest.Certificate(t, "leases.example")
	at := natspeer.Start(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q }\nauthorization { user: %q, password: %q }\n", cert, key, "w@x", canary+":/?%")).URI()
	own, verified := []natsio.Option{natsio.RootCAs(cert)}, "certificates are verified"
	pool := x509.NewCertPool()
	text, err := os.ReadFile(cert)
	documenttest.Must(t, "ReadFile()", err)
	pool.AppendCertsFromPEM(text)
	demanded := []natsio.Option{func(o *natsio.Options) error {
		o.Name, o.TLSConfig = "to "+o.Servers[0], &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		return nil
	}}
	unverified := []natsio.Option{natsio.Secure(&tls.Config{InsecureSkipVerify: true})} //nolint:gosec // It is what is tested.
	const nowhere = "nats://127.0.0.1:1/"
	for what, c := range map[string]struct {
		at, parameters string
		connect        []natsio.Option
		says           string // by errors; empty if there are none
		secured        string
	}{
		"by an own authority":     {at, "?tls=true", own, "", verified},
		"as the options say":      {at, "", own, "", verified},
		"without verification":    {at, "?tls=true", unverified, "", "aren't verified"},
		"as the server demands":   {at, "", demanded, "", verified},
		"nowhere, by options":     {nowhere, "", own, "no servers available", verified},
		"nowhere, not verified":   {nowhere, "?tls=true", unverified, "no servers available", "aren't verified"},
		"nowhere, without TLS":    {nowhere, "", demanded, "no servers available", "to this machine alone"},
		"by the system's":         {at, "?tls=true", nil, "certificate signed by unknown authority", verified},
		"since the server does":   {at, "", nil, "certificate signed by unknown authority", "to this machine alone"},
		"under another name":      {strings.Replace(at, "127.0.0.1", "localhost", 1), "?tls=true", own, "certificate is valid for leases.example, not localhost", verified},
		"to a server without TLS": {natspeer.Shared(t), "?tls=true", nil, "secure connection not available", verified},
	} {
		uri := fresh(strings.Replace(c.at, "nats://", "nats://w%40x:"+canary+"%3A%2F%3F%25@", 1)) + c.parameters
		l, err := Open(t.Context(), Options{URI: uri, Connect: c.connect})
		documenttest.Must(t, "Open()", err)
		defer func() { _ = l.Close(within(t)) }()
		if err = l.Init(within(t)); err == nil {
			err = l.Append(within(t), storetest.Grant("job", 1))
		}
		if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, store.ErrNotStored) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("Append() %s = %v, want %q", what, err, c.says)
		}
		if f := examined(t, l)[store.CheckTLS]; (f.Level == store.LevelWarn) != (c.secured == "aren't verified") || !strings.Contains(f.Text, c.secured) {
			t.Errorf("Examine() %s says %+v of TLS, want %q", what, f, c.secured)
		}
	}
}

// testdata has what nsc makes of an operator, an account and a user, whose tokens don't end.
func TestAFileOfCredentialsLogsIn(t *testing.T) {
	t.Parallel()
	settings, err := os.ReadFile(filepath.Join("testdata", "operator.conf"))
	documenttest.Must(t, "ReadFile()", err)
	worker, err := os.ReadFile(filepath.Join("testdata", "worker.creds"))
	documenttest.Must(t, "ReadFile()", err)
	uri := fresh(natspeer.Start(t, string(settings)).URI())
	file := filepath.Join(t.TempDir(), "worker.creds")
	header, payload, _ := strings.Cut(string(worker), ".")
	l := opened(t, uri+"?creds="+file)
	for _, c := range []struct { // The file is read anew for each connection.
		creds, says string
		is          error
	}{
		{"", "no such file", nil},
		{"nothing", "no nkey seed found", nil},
		{header + "." + strings.Replace(payload, ".", ".AAAA", 1), "Authorization Violation", store.ErrDenied}, // another signature
	} {
		if c.creds != "" {
			documenttest.Must(t, "WriteFile()", os.WriteFile(file, []byte(c.creds), 0o600))
		}
		documenttest.Means(t, "Append() with "+c.says, l.Append(within(t), storetest.Grant("job", 1)), c.is, true, c.says)
	}
	documenttest.Must(t, "WriteFile()", os.WriteFile(file, worker, 0o600))
	documenttest.Must(t, "Init()", l.Init(within(t)))
	documenttest.Must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	if f := examined(t, l)[CheckLimits]; f.Level != store.LevelOK {
		t.Errorf("Examine() says %+v of the account", f)
	}
	err = opened(t, uri).Append(within(t), storetest.Grant("job", 2))
	documenttest.Means(t, "Append() without credentials", err, store.ErrDenied, true, "")
}

func TestCertificatesThatAnOptionNamesAreRenewedOnDisk(t *testing.T) {
	t.Parallel()
	ca, key := documenttest.Certificate(t)
	client, clientKey := documenttest.Certificate(t, "worker")
	servers := documenttest.Renewable(t, ca, key, client)
	s := natspeer.Start(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", servers[0], servers[1], servers[2]))
	at := documenttest.Renewable(t, ca, client, clientKey)
	l, err := Open(t.Context(), Options{URI: fresh(s.URI()), Connect: []natsio.Option{natsio.RootCAs(at[0]), natsio.ClientCert(at[1], at[2])}})
	documenttest.Must(t, "Open()", err)
	defer func() { _ = l.Close(within(t)) }()
	documenttest.Must(t, "Init()", l.Init(within(t)))
	ca, key = documenttest.Certificate(t)
	client, clientKey = documenttest.Certificate(t, "worker")
	documenttest.GoesOn(t, l, func() {
		for path, by := range map[string]string{at[0]: ca, at[1]: client, at[2]: clientKey, servers[0]: ca, servers[1]: key, servers[2]: client} {
			documenttest.Renew(t, path, by)
		}
		s.Kill()
		s.Restart()
	})
}

func TestALoginIsRenewedInTheFileOfTheURI(t *testing.T) {
	t.Parallel()
	settings := filepath.Join(t.TempDir(), "users.conf")
	allow := func(user, password string) {
		text := fmt.Sprintf("authorization { user: %q, password: %q }\n", user, password)
		documenttest.Must(t, "WriteFile()", os.WriteFile(settings, []byte(text), 0o600))
	}
	allow("first", canary)
	s := natspeer.Start(t, fmt.Sprintf("include %q\n", strings.Repeat("../", 20)+settings)) // It is taken from the folder of the server's own.
	at, bucket := filepath.Join(t.TempDir(), "uri"), fresh("")
	write := func(login string) string {
		uri := strings.Replace(s.URI(), "nats://", "nats://"+login+"@", 1) + bucket
		documenttest.Must(t, "WriteFile()", os.WriteFile(at, []byte(uri+"\n"), 0o600))
		return uri
	}
	l, err := store.Open(t.Context(), write("first:"+canary), store.OpenOptions{File: at})
	documenttest.Must(t, "Open()", err)
	defer func() { _ = l.Close(within(t)) }()
	documenttest.Must(t, "Init()", l.(*Ledger).Init(within(t)))
	documenttest.GoesOn(t, l, func() {
		write("second:another")
		allow("second", "another")
		s.Kill()
		s.Restart()
	})
}
