package mysql

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/mysqlpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// certificate is one for 127.0.0.1 that signs itself, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, "GenerateKey()", err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &own.PublicKey, own)
	must(t, "CreateCertificate()", err)
	private, err := x509.MarshalPKCS8PrivateKey(own)
	must(t, "MarshalPKCS8PrivateKey()", err)
	text := func(kind string, of []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: of}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", private)
}

func TestTheServersCertificateIsVerified(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	s := mysqlpeer.Start(t, mysqlpeer.Options{
		Files: map[string]string{"own.pem": cert, "own.key": key},
		Flags: []string{"--ssl-cert=own.pem", "--ssl-key=own.key", "--require-secure-transport=1"},
	})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	must(t, "WriteFile()", os.WriteFile(ca, []byte(cert), 0o600))
	root := "mysql://root@" + s.Addr() + "/jobs"
	execute(t, "root@tcp("+s.Addr()+")/?tls=skip-verify", "CREATE DATABASE jobs")
	for name, c := range map[string]struct {
		uri, fails string
		level      store.Level
		says       string
	}{
		"verified":        {root + "?tls=true&tlsCA=" + ca, "", store.LevelOK, "encrypted, and the server's certificate is verified"},
		"not verified":    {root + "?tls=skip-verify", "", store.LevelWarn, "the server's certificate isn't verified (tls=skip-verify)"},
		"of no authority": {root + "?tls=true", "certificate", store.LevelOK, "is verified"},
		"of another name": {strings.Replace(root, "127.0.0.1", "localhost", 1) + "?tls=true&tlsCA=" + ca, "certificate", store.LevelOK, "is verified"},
		"not encrypted":   {root, "1045", store.LevelOK, "not encrypted, to this machine alone"},
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
				wantOutcome(t, "Init()", err, outcome{map[bool]error{true: store.ErrDenied}[c.fails == "1045"], true}, c.fails)
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
