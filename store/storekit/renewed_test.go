package storekit_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/storekit"
)

func TestWhatAFileHadLastIsUsedWhileItCanNotBeRead(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "file")
	write := func(text string) { documenttest.Must(t, "WriteFile()", os.WriteFile(at, []byte(text), 0o600)) }
	write("a")
	r, err := storekit.NewRenewed(func() (string, error) {
		text, err := os.ReadFile(at)
		return string(text), err
	}, at, "")
	documenttest.Must(t, "NewRenewed()", err)
	lost := errors.New("lost")
	documenttest.Equal(t, "Now()", r.Now(), "a")
	write("b")
	documenttest.Equal(t, "Now() of another content", r.Now(), "b")
	documenttest.Equal(t, "Explain() of what was read now", r.Explain(lost), lost)
	documenttest.Must(t, "Remove()", os.Remove(at))
	documenttest.Equal(t, "Now() without the file", r.Now(), "b")
	documenttest.Says(t, "Explain() without the file", r.Explain(lost), lost, "lost ("+at+" can't be read now")
	documenttest.Equal(t, "Explain() of no error", r.Explain(nil), nil)
	write("c")
	documenttest.Equal(t, "Now() of a file that is there again", r.Now(), "c")
	documenttest.Equal(t, "Explain() of a file that is there again", r.Explain(lost), lost)
	documenttest.Equal(t, "Explain() without files", (*storekit.Renewed[string])(nil).Explain(lost), lost)
}

// Nobody might write a pipe a second time, and its reader would wait for that.
func TestAPipeIsReadOnce(t *testing.T) {
	t.Parallel()
	n := 0
	r, err := storekit.NewRenewed(func() (int, error) {
		n++
		return n, nil
	}, os.DevNull)
	documenttest.Must(t, "NewRenewed()", err)
	documenttest.Equal(t, "Now()", r.Now()+r.Now(), 2)
}

func TestOverHTTPCertificatesAreRenewedAndTheServersNameIsVerified(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(s.Close)
	ca, key := documenttest.Certificate(t, "leases.example")
	f := documenttest.NewFront(t, s.Listener.Addr().String(), ca, key, "")
	at := documenttest.Renewable(t, ca)[0]
	for name, c := range map[string]struct{ host, serverName, says string }{
		"an address":         {"127.0.0.1", "", ""},
		"another name":       {"localhost", "", "certificate is valid for leases.example, not localhost"},
		"the name given":     {"localhost", "leases.example", ""},
		"a name not its own": {"127.0.0.1", "other.example", "certificate is valid for leases.example, not other.example"},
	} {
		files, err := storekit.RenewedTLS(&tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.serverName}, storekit.File{Name: "ca", Path: at}, storekit.File{}, storekit.File{})
		documenttest.Must(t, "RenewedTLS()", err)
		transport := storekit.NewTransport(nil)
		storekit.RenewTLS(transport, files, clock.New())
		ask := func() error {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, strings.Replace("https://"+f.Addr, "127.0.0.1", c.host, 1), http.NoBody)
			documenttest.Must(t, "NewRequest()", err)
			reply, err := transport.RoundTrip(req)
			if err == nil {
				err = reply.Body.Close()
			}
			return err
		}
		for range 2 {
			if err := ask(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("a request to %s = %v, want %q", name, err, c.says)
			}
			ca, key = documenttest.Certificate(t, "leases.example")
			documenttest.Renew(t, at, ca)
			f.Renew(ca, key, "")
			transport.CloseIdleConnections()
		}
	}
}

// Servers of HTTP/2 are spoken to so, as without files.
func TestHTTP2IsSpokenOverRenewedTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Met", r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	files, err := storekit.RenewedTLS(s.Client().Transport.(*http.Transport).TLSClientConfig, storekit.File{}, storekit.File{}, storekit.File{})
	documenttest.Must(t, "RenewedTLS()", err)
	transport := storekit.NewTransport(nil)
	storekit.RenewTLS(transport, files, clock.New())
	reply, err := (&http.Client{Transport: transport}).Get(s.URL)
	documenttest.Must(t, "Get()", err)
	documenttest.Must(t, "Close()", reply.Body.Close())
	documenttest.Equal(t, "protocol", reply.Header.Get("Met"), "HTTP/2.0")
}

// Only the login may change in the file of a URI: that of another store isn't sent to this one.
func TestTheLoginOfAnotherStoreIsNotTaken(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "uri")
	r, err := storekit.RenewedURI(at, "redis://w:old@h:1/0?prefix=a", func(uri string) (string, error) { return uri, nil })
	documenttest.Must(t, "RenewedURI()", err)
	for uri, taken := range map[string]bool{
		"redis://w:new@h:1/0?prefix=a":   true,
		"redis://w:n@w@h:1/0?prefix=a\n": true,
		"redis://h:1/0?prefix=a":         true,
		"redis://w:new@h:2/0?prefix=a":   false,
		"redis://w:new@h:1/1?prefix=a":   false,
		"rediss://w:new@h:1/0?prefix=a":  false,
		"":                               false,
	} {
		documenttest.Must(t, "WriteFile()", os.WriteFile(at, []byte(uri), 0o600))
		if is := r.Now() == strings.TrimRight(uri, "\n"); is != taken {
			t.Errorf("with %q, %q is used", uri, r.Now())
		}
	}
}

// A bundle may be written while it is read.
func TestAuthoritiesMustBeWhole(t *testing.T) {
	t.Parallel()
	ca, _ := documenttest.Certificate(t)
	text, err := os.ReadFile(ca)
	documenttest.Must(t, "ReadFile()", err)
	text = append([]byte("# ours\n"), append(text, text...)...)
	at := filepath.Join(t.TempDir(), "bundle")
	first := strings.Index(string(text), "-----END") + len("-----END CERTIFICATE-----")
	for n := range len(text) {
		documenttest.Must(t, "WriteFile()", os.WriteFile(at, text[:n], 0o600))
		whole := n == first || n == first+1 || n >= len(strings.TrimRight(string(text), "\n"))
		if _, err := storekit.Authorities(at); (err == nil) != whole {
			t.Fatalf("Authorities() of the first %d of %d bytes = %v", n, len(text), err)
		}
	}
	documenttest.Must(t, "WriteFile()", os.WriteFile(at, append(text, "# ---------- the end ----------\n"...), 0o600))
	if _, err := storekit.Authorities(at); err != nil {
		t.Errorf("Authorities() of a bundle with a comment at its end = %v", err)
	}
}
