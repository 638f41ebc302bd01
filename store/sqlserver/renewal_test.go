//go:build sqlserver

package sqlserver

import (
	"crypto/tls"
	"testing"

	"github.com/slotlease/slotlease/store/internal/documenttest"
)

// Nothing here speaks the server's protocol: this is a handshake by the configuration that the driver is given for a connection.
func TestTheAuthorityIsRenewedOnDisk(t *testing.T) {
	t.Parallel()
	documenttest.AuthorityIsRenewed(t, "", func(addr, ca string) func() error {
		l := opened(t, Options{URI: "sqlserver://" + addr + "/jobs?encrypt=strict&tlsCA=" + ca})
		return func() error {
			conn, err := (&tls.Dialer{Config: l.config(0).TLSConfig}).DialContext(t.Context(), "tcp", addr)
			if err == nil {
				_ = conn.Close()
			}
			return err
		}
	})
}
