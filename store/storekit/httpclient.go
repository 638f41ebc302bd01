package storekit

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// NewTransport makes connections of the ledger's own, encrypted as a configuration says, or by default. Time-outs are those of the
// operations' contexts; a connection that died shows by its pings.
func NewTransport(secure *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       secure,
		TLSHandshakeTimeout:   10 * time.Second,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 2 * time.Second},
		MaxIdleConnsPerHost:   100,
		IdleConnTimeout:       90 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// NewHTTPClient is a client with a NewTransport. skipVerify leaves certificates unchecked.
func NewHTTPClient(skipVerify bool) *http.Client {
	return Direct(NewTransport(&tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: skipVerify}))
}

// Direct is a client that follows no redirects, which would send a signed request to another host.
func Direct(through http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     through,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
