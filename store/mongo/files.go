package mongo

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store/storekit"
)

// encryption is TLS with what the files have by then that the URI names. The driver asks it for the client's certificate each time, but
// keeps the authorities: see renewed.
type encryption struct{ *storekit.Renewed[*tls.Config] }

// encryptionOf reads the files; nil if a URI names none. The driver does so, of a URI with the settings of TLS alone.
func encryptionOf(uri string) (*encryption, error) {
	_, query, _ := strings.Cut(uri, "?")
	settings, ca, files := "mongodb://localhost/?tls=true", "", []string(nil)
	for _, pair := range strings.Split(query, "&") {
		name, value, _ := strings.Cut(strings.ToLower(pair), "=")
		if !strings.HasPrefix(name, "tls") && !strings.HasPrefix(name, "ssl") {
			continue
		}
		settings += "&" + pair
		if strings.HasSuffix(name, "file") {
			path, _ := url.QueryUnescape(pair[len(pair)-len(value):])
			if files = append(files, path); name == "tlscafile" || name == "sslcertificateauthorityfile" {
				ca = path
			}
		}
	}
	if len(files) == 0 {
		return nil, nil //nolint:nilnil // There is nothing to renew.
	}
	read, err := storekit.NewRenewed(func() (*tls.Config, error) {
		if err := storekit.CheckAuthorities(ca); err != nil {
			return nil, fmt.Errorf("tlsCAFile: %w", err)
		}
		o := options.Client().ApplyURI(settings)
		return o.TLSConfig, o.Validate()
	}, files...)
	return &encryption{read}, err
}

// now is the one of now.
func (e *encryption) now() *tls.Config {
	c := e.Now().Clone()
	if len(c.Certificates) > 0 {
		c.Certificates = nil
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &e.Now().Certificates[0], nil }
	}
	return c
}

// renewed are options for a client that trusts the authorities of now; nil if they are those of before.
func (e *encryption) renewed(o *options.ClientOptions) *options.ClientOptions {
	if e == nil {
		return nil
	}
	c := e.now()
	if c.RootCAs.Equal(o.TLSConfig.RootCAs) {
		return nil
	}
	again := *o
	return again.SetTLSConfig(c)
}
