package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/redispeer"
)

var noTLS = &tls.Config{MinVersion: tls.VersionTLS13}

// startTLS starts a server with TLS, and returns its address and who trusts it.
func startTLS(t testing.TB) (addr string, config *tls.Config) {
	t.Helper()
	certificate, key := documenttest.Certificate(t, "cache.example")
	pem, err := os.ReadFile(certificate)
	must(t, "ReadFile()", err)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(pem)
	addr = freePort(t)
	_, port, err := net.SplitHostPort(addr)
	must(t, "SplitHostPort()", err)
	redispeer.Start(t, redispeer.Options{Flags: []string{"--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no", "--tls-ca-cert-file", certificate}})
	return addr, &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	tlsPort, config := startTLS(t)
	uri := "rediss://" + tlsPort + "/0"
	l := openWith(t, Options{URI: uri, TLS: config})
	must(t, "Append()", appendTo(t, l, 1))
	wantFinding(t, examined(t, l), store.CheckTLS, store.LevelOK, "is verified")
	refused := func(l *Ledger, seq int64) error {
		for {
			// A busy machine may take longer for a connection than is waited for one.
			if err := appendTo(t, l, seq); err == nil || !strings.Contains(err.Error(), context.DeadlineExceeded.Error()) {
				return err
			}
		}
	}
	wantRefusal(t, "Append() to a server whose certificate nobody knows", refused(open(t, uri), 2), nil, "certificate")
	l = open(t, uri+"?insecureSkipVerify=true")
	must(t, "Append()", appendTo(t, l, 2))
	wantFinding(t, examined(t, l), store.CheckTLS, store.LevelOK, "isn't verified")
	// A server that is asked in another way than it speaks.
	wantRefusal(t, "Append() without TLS", refused(open(t, "redis://"+tlsPort+"/0"), 3), nil, "log in")
	wantFinding(t, examined(t, open(t, "redis://example.invalid/0")), store.CheckTLS, store.LevelWarn, "rediss://")
}

// freePort is an address on which nothing listens now.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
