package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// passwordVariable is the environment variable with the user's password.
const passwordVariable = "ETCD_PASSWORD"

// mostPassword bounds the file of a password, in bytes.
const mostPassword = 4096

func init() {
	d := store.Driver{
		Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
			getenv := o.Getenv
			if getenv == nil {
				getenv = os.Getenv
			}
			l, err := open(ctx, Options{URI: uri, Clock: o.Clock}, getenv)
			if err != nil {
				return nil, err
			}
			return l, nil
		},
		Redact: Redact,
		Form:   "etcd://HOST:PORT,HOST:PORT/PREFIX?user=NAME",

		Secrets: []store.Secret{{Variable: passwordVariable}},
		Checks: []store.Check{
			{Name: CheckMembers, Asks: "do all endpoints answer, in one cluster with a leader?"},
			{Name: CheckAlarms, Asks: "is an alarm on, such as NOSPACE?"},
			{Name: CheckSpace, Asks: "is the database well below its quota?"},
			{Name: CheckCompaction, Asks: "are old revisions removed?"},
		},
	}
	store.Register("etcd", d)
	d.Form = "etcds" + strings.TrimPrefix(d.Form, "etcd")
	store.Register("etcds", d)
}

// Open checks the options, reads the files that they name, and makes a ledger. It reports all that is wrong with them
// at once. It waits for no connection: a cluster that can't be reached shows in the operations, and they work once it
// can.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	return open(ctx, o, func(string) string { return "" })
}

func open(_ context.Context, o Options, getenv func(name string) string) (*Ledger, error) {
	c := &cluster{clock: o.Clock, renewing: make(chan struct{}, 1)}
	if c.clock == nil {
		c.clock = clock.New()
	}
	a, errs := parseURI(o.URI)
	bad := func(err error) { errs = append(errs, err) }
	c.a = a
	c.user, c.password = cmp.Or(o.User, a.user), o.Password
	switch {
	case o.User != "" && a.user != "" && o.User != a.user:
		bad(errors.New("options: User in Options and another in the URI: give one"))
	case c.password != "" && a.passwordFile != "":
		bad(errors.New("options: Password in Options and passwordFile in the URI: give one"))
	case a.passwordFile != "":
		password, err := readPassword(a.passwordFile)
		c.password = password
		bad(err)
	case c.password == "" && c.user != "":
		c.password = getenv(passwordVariable)
	}
	if (c.user == "") != (c.password == "") && a.passwordFile == "" {
		bad(fmt.Errorf("options: a user needs a password, and a password a user: in Options, or user and passwordFile in the URI, or %s in the environment", passwordVariable))
	}
	switch {
	case o.ServerSkew < 0:
		bad(fmt.Errorf("options: ServerSkew %v must not be negative", o.ServerSkew))
	case o.ServerSkew != 0 && a.skew != 0 && o.ServerSkew != a.skew:
		bad(fmt.Errorf("options: serverSkew %v in the URI and %v in Options: give one", a.skew, o.ServerSkew))
	case (o.OneMember || a.oneMember) && cmp.Or(o.ServerSkew, a.skew) != 0:
		bad(errors.New("options: one member has one clock: give either OneMember or ServerSkew"))
	}
	c.oneMember = o.OneMember || a.oneMember
	if !c.oneMember {
		c.skew = cmp.Or(o.ServerSkew, a.skew, DefaultServerSkew)
	}
	var err error
	switch {
	case o.TLS != nil && !a.encrypted:
		bad(errors.New("options: TLS goes with etcds://"))
	case o.TLS != nil && (a.ca != "" || a.cert != "" || a.serverName != ""):
		bad(errors.New("options: TLS in Options, and ca, cert or serverName in the URI: give one"))
	case o.TLS != nil:
		c.tls = o.TLS.Clone()
	case a.encrypted:
		c.tls, err = a.tlsConfig()
		bad(err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("etcd: open: %w", err)
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.secrets.Hide(c.password)
	c.secrets.Publish(append(a.hosts, a.prefix, c.user)...)
	c.web = c.newWeb()
	c.fitness = storekit.NewFitness(c.clock, c.check)
	c.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "etcd", Secrets: c.secrets, Meaning: meaning, Fitness: c.fitness})
	return &Ledger{storekit.OnObjects(storekit.ObjectsOptions{Objects: c, Runner: c.runner, Folder: c.folder(), Fitness: c.fitness}), c}, nil
}

// newWeb is the client of the members' HTTP. Time-outs are those of the operations' contexts.
func (c *cluster) newWeb() *http.Client {
	return &http.Client{
		// No proxy: gRPC's connections go through none either, unless the environment says so for both.
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         storekit.DialUntil(c.life, (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext),
			TLSClientConfig:     c.tls.Clone(),
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 2 * time.Second},
			MaxIdleConnsPerHost: 4,
			IdleConnTimeout:     90 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// readPassword reads the file of a password. Its errors quote nothing of it.
func readPassword(path string) (string, error) {
	b, err := os.ReadFile(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("passwordFile: %w", err)
	case len(b) > mostPassword:
		return "", fmt.Errorf("passwordFile: has more than %d bytes", mostPassword)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if text == "" {
		return "", errors.New("passwordFile: is empty")
	}
	return text, nil
}

// tlsConfig makes the configuration of the URI's files. The client's certificate is read again for each connection, so
// that it may be renewed.
func (a address) tlsConfig() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: a.serverName}
	var errs []error
	if a.ca != "" {
		pem, err := os.ReadFile(a.ca)
		c.RootCAs = x509.NewCertPool()
		if err == nil && !c.RootCAs.AppendCertsFromPEM(pem) {
			err = errors.New("has no certificate in PEM")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("ca: %w", err))
		}
	}
	if a.cert != "" && a.key != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(a.cert, a.key)
			if err != nil {
				return nil, fmt.Errorf("cert and key: %w", err)
			}
			return &pair, nil
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
		_, err := load()
		errs = append(errs, err)
	}
	return c, errors.Join(errs...)
}
