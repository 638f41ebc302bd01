package storekit_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store/storekit"
)

func TestWhatToDoAboutACertificateIsSaidOfNothingElse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tls: failed to verify certificate: x509: certificate signed by unknown authority":            "name it by ca",
		"x509: certificate is valid for a.example, not b.example":                                     "name it by ca",
		"tls: failed to verify certificate: x509: certificate has expired or is not yet valid: later": "renew the server's certificate",
		"remote error: tls: internal error":                                                           "",
		"remote error: tls: bad certificate":                                                          "",
		"open x509: no such file or directory":                                                        "",
	} {
		got := storekit.OfCertificate(errors.New(text), "name it by ca")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("OfCertificate(%s) = %q, want %q", text, got, want)
		}
	}
	if got := storekit.OfCertificate(errors.New("x509: certificate signed by unknown authority"), ""); !strings.Contains(got, "SSL_CERT_FILE") {
		t.Errorf("OfCertificate() of a store that has no other = %q, want SSL_CERT_FILE", got)
	}
}
