package storekit

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewHTTPClient is a client whose connections are the ledger's own. Time-outs are those of the operations' contexts;
// a connection that died shows by its pings. It follows no redirects, which would send a signed request to another
// host. skipVerify leaves certificates unchecked.
func NewHTTPClient(skipVerify bool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: skipVerify},
			TLSHandshakeTimeout:   10 * time.Second,
			ForceAttemptHTTP2:     true,
			HTTP2:                 &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 2 * time.Second},
			MaxIdleConnsPerHost:   100,
			IdleConnTimeout:       90 * time.Second,
			ExpectContinueTimeout: time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
