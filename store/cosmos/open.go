package cosmos

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/internal/document"
)

// defaultSkew is how far the servers' clocks are assumed to be apart.
const defaultSkew = 250 * time.Millisecond

// Open checks the options and makes a ledger of them. It reports everything that
// is wrong with them at once. It waits for no connection: an account that can't
// be reached shows in the operations, and they work once it can.
func Open(_ context.Context, o Options) (*Ledger, error) {
	l := &Ledger{clock: o.Clock, transport: o.Transport}
	if l.clock == nil {
		l.clock = clock.New()
	}
	var errs []error
	bad := func(err error) { errs = append(errs, err) }
	if (o.URI == "") == (o.ConnectionString == "") {
		bad(errors.New("options: set either URI or ConnectionString"))
	}
	if o.ServerSkew < 0 {
		bad(fmt.Errorf("options: ServerSkew %v must not be negative", o.ServerSkew))
	}
	key := o.Key
	var a address
	var err error
	switch {
	case o.URI != "":
		a, err = parseURI(o.URI)
		bad(err)
	case o.ConnectionString != "":
		if o.Key != "" || o.Credential != nil {
			bad(errors.New("options: Key and Credential go with URI; ConnectionString has a key of its own"))
		}
		a, key, err = parseConnectionString(o.ConnectionString)
		bad(err)
	}
	if o.ServerSkew != 0 && a.skew != 0 && o.ServerSkew != a.skew {
		bad(fmt.Errorf("options: serverSkew %v in the URI and %v in Options: give one", a.skew, o.ServerSkew))
	}
	a.database, err = document.Pick("database", o.Database, a.database, DefaultDatabase, checkName("database"))
	bad(err)
	a.container, err = document.Pick("container", o.Container, a.container, DefaultContainer, checkName("container"))
	bad(err)
	l.offer, err = properties(a.offer, offer{manual: o.Throughput, autoscale: o.Autoscale, serverless: o.Serverless})
	bad(err)
	bad(checkCredentials(key, o.Credential, a))
	if a.skipVerify && o.Transport != nil {
		bad(errors.New("options: insecureSkipVerify has no effect on a Transport of your own"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("cosmos: open: %w", err)
	}
	l.address = a
	l.skew, l.unsafe = cmp.Or(o.ServerSkew, a.skew, defaultSkew), o.UnsafeUnverifiedAccount || a.unsafe
	l.secrets.Hide(key)
	l.secrets.Publish(a.host, a.database, a.container)
	if l.transport == nil {
		l.own = newHTTPClient(a.skipVerify)
		l.transport = l.own
	}
	if l.sign, err = newSigner(key, o); err != nil {
		return nil, fmt.Errorf("cosmos: open: %w", l.explain(err))
	}
	l.life, l.end = context.WithCancel(context.Background())
	return l, nil
}

// newHTTPClient is a client whose connections are the ledger's own. Time-outs are
// those of the operations' contexts; a connection that died shows by its pings.
func newHTTPClient(skipVerify bool) *http.Client {
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
		// A redirect would send a signed request to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
