package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/benbjohnson/clock"
	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// DefaultPrefix is the prefix of keys, without its braces.
	DefaultPrefix = "slotlease"
	// DefaultReplicaWait is how long an operation waits for replicas.
	DefaultReplicaWait = 2 * time.Second
	// DefaultSkew is how far the clocks of a primary and its replicas are assumed to be apart.
	DefaultSkew = 100 * time.Millisecond
)

// sentinelVariable is the environment variable with the password of sentinels, for store.Open.
const sentinelVariable = "REDIS_SENTINEL_PASSWORD"

// passwordVariable is the environment variable from which redis-cli, too, takes a password.
const passwordVariable = "REDISCLI_AUTH"

// Options of Open. Either URI or Client is required.
type Options struct {
	// URI is where the database is:
	//
	//	redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE][?PARAMETERS]
	//	rediss://…                                            with TLS
	//	redis+sentinel://[USER:PASSWORD@]SENTINEL[:PORT],…/SERVICE[/DATABASE]
	//	rediss+sentinel://…                                   with TLS, to the sentinels as well
	//
	// The ports are 6379 and 26379 by default, the database 0. The parameters prefix, replicas, replicaWait,
	// serverSkew and unsafeNoPersistence are the options below; an option that is set there and here must be the
	// same. insecureSkipVerify=true, on a loopback address alone, doesn't verify certificates. A character of the
	// password that has a meaning in URIs is percent-encoded.
	URI string
	// Client is the application's own client, instead of a URI: of a server (NewClient), of the primary that sentinels
	// name (NewFailoverClient), or of a cluster (NewClusterClient). The ledger connects and logs in as the client does:
	// with its address, Dialer, TLSConfig, credentials or their provider, DB and OnConnect. It takes no connection from
	// the client's pool, whatever that has: see the package documentation. Close leaves the client open.
	Client goredis.UniversalClient
	// Username and Password log in, in place of those in the URI. Without a Username the user is default.
	Username, Password string
	// PasswordFunc gives the password or token of now, in place of Password, where it changes. It is asked whenever a
	// connection is made, has 10 s, and is called by one goroutine at a time.
	PasswordFunc func(ctx context.Context) (string, error)
	// Prefix is that of all keys, in braces: {slotlease}:… Default: slotlease. It has 1 to 64 letters, digits, dots,
	// hyphens and underscores.
	Prefix string
	// Replicas is how many replicas must have a record before an append returns, and before a read returns it. See
	// the package documentation. Default: 0, at most 100.
	Replicas int
	// ReplicaWait is how long is waited for them. Default: 2 s; 10 ms to 1 min.
	ReplicaWait time.Duration
	// ServerSkew is how far the clocks of servers that may be the primary one after another are apart, in stamps.
	// Default: 100 ms if there are replicas, sentinels or a cluster, or else 0. At most 1 h.
	ServerSkew time.Duration
	// UnsafeNoPersistence accepts a server without an append-only file. Then a restart of its process loses
	// acknowledged records, and two workers may hold one slot.
	UnsafeNoPersistence bool
	// ReadOnly makes a ledger for people who look: Append and Trim return store.ErrDenied, nothing is written, and
	// reads wait for no replicas, so that they may show a record which a failover loses.
	ReadOnly bool
	// SentinelUsername and SentinelPassword log in at sentinels. Default: no login.
	SentinelUsername, SentinelPassword string
	// AppName names the program in the server's list of clients: 1 to 64 letters, digits, dots, hyphens and
	// underscores. Default: slotlease.
	AppName string
	// TLS is used with rediss and rediss+sentinel. Default: the system's authorities, TLS 1.2 or later.
	TLS *tls.Config
	// Clock measures what the store waits for, not leases. Default: the real clock.
	Clock clock.Clock
}

func init() {
	for _, s := range schemes {
		a := address{scheme: s}
		where := "://HOST/DATABASE"
		if a.sentinels() {
			where = "://HOST,HOST/SERVICE/DATABASE"
		}
		store.Register(s, store.Driver{
			Open: openURI, Redact: Redact, Form: s + where,
			Secrets: []store.Secret{{Variable: passwordVariable, Shared: true}, {Variable: sentinelVariable}},
		})
	}
}

// openURI is Open for store.Open. A password that isn't in the URI is that of REDISCLI_AUTH, and that of sentinels
// REDIS_SENTINEL_PASSWORD.
func openURI(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	options := Options{URI: uri, ReadOnly: o.ReadOnly, Clock: o.Clock}
	if prefixName().MatchString(o.AppName) { // It is for information.
		options.AppName = o.AppName
	}
	if a, err := parseURI(uri); err == nil {
		if a.password == "" {
			options.Password = getenv(passwordVariable)
		}
		if a.sentinels() {
			options.SentinelPassword = getenv(sentinelVariable)
		}
	}
	l, err := Open(ctx, options)
	if err != nil {
		return nil, err
	}
	if logins, err := storekit.RenewedURI(o.File, uri, parseURI); err == nil && logins != nil && l.address.password != "" {
		s, _ := l.settings(ctx)
		s.CredentialsProviderContext = func(context.Context) (string, string, error) {
			now := logins.Now()
			return now.user, cmp.Or(now.password, options.Password), nil
		}
	}
	return l, nil
}

// Open checks the options and makes a ledger of them. It reports all that is wrong with them at once, without any
// secret. It sends nothing: a server that can't be reached shows in the operations, and they work once it can.
func Open(_ context.Context, o Options) (*Ledger, error) {
	var a address
	var err error
	l := &Ledger{
		clock: o.Clock, readOnly: o.ReadOnly, patience: patience, appName: cmp.Or(o.AppName, DefaultPrefix), lookup: net.DefaultResolver.LookupHost,
		sentinel: &goredis.Options{Username: o.SentinelUsername, Password: o.SentinelPassword},
	}
	if l.clock == nil {
		l.clock = clock.New()
	}
	switch {
	case (o.URI == "") == (o.Client == nil):
		err = errors.New("options: set either URI or Client")
	case o.Client != nil:
		a, err = l.take(o)
	default:
		a, err = parseURI(o.URI)
	}
	if errs := append([]error{err}, a.options(o)...); errors.Join(errs...) != nil {
		return nil, fmt.Errorf("redis: open: %w", errors.Join(errs...))
	}
	l.address, l.names = a, newNames(a.prefix)
	if l.settings == nil {
		l.own(o)
	}
	l.secrets.Hide(a.password)
	l.secrets.Hide(o.SentinelPassword)
	l.secrets.HideUser(a.user + ":" + a.password)
	l.secrets.Publish(append([]string{a.prefix, a.service}, a.hosts...)...)
	l.links = newPool(l.clock, l.open)
	l.fitness = storekit.NewFitness(l.clock, l.check)
	l.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "redis", Secrets: l.secrets, Meaning: meaning, Fitness: l.fitness})
	return l, nil
}

// options completes an address by the options, and returns what is wrong with them.
func (a *address) options(o Options) (errs []error) {
	bad := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf("options: "+format, args...))
		}
	}
	var err error
	if a.prefix, err = document.Pick("prefix", o.Prefix, a.prefix, DefaultPrefix, checkName); err != nil {
		errs = append(errs, fmt.Errorf("options: the prefix %w", err))
	}
	if err := checkName(cmp.Or(o.AppName, DefaultPrefix)); err != nil {
		errs = append(errs, fmt.Errorf("options: the AppName %w", err))
	}
	a.login(o, bad)
	bad(a.replicas != 0 && o.Replicas != 0 && a.replicas != o.Replicas, "replicas %d in the URI and %d in Options: give one", a.replicas, o.Replicas)
	bad(a.wait != 0 && o.ReplicaWait != 0 && a.wait != o.ReplicaWait, "replicaWait %v in the URI and %v in Options: give one", a.wait, o.ReplicaWait)
	a.replicas, a.wait = cmp.Or(o.Replicas, a.replicas), cmp.Or(o.ReplicaWait, a.wait, DefaultReplicaWait)
	a.unpersistent = a.unpersistent || o.UnsafeNoPersistence
	bad(a.replicas < 0 || a.replicas > mostReplicas, "Replicas %d must be 0 to %d", a.replicas, mostReplicas)
	bad(a.wait < leastWait || a.wait > mostWait, "ReplicaWait %v must be %v to %v", a.wait, leastWait, mostWait)
	if a.skew, err = storekit.ServerSkew(o.ServerSkew, a.skew, 0); err != nil {
		errs = append(errs, err)
	}
	bad(a.skew > storekit.MostSkew, "ServerSkew %v must be 0 to %v", a.skew, storekit.MostSkew)
	read := a.scheme != "" // Otherwise the URI is wrong, which is said already.
	bad(read && !a.sentinels() && (o.SentinelUsername != "" || o.SentinelPassword != ""), "SentinelUsername and SentinelPassword go with redis+sentinel:// and rediss+sentinel://")
	bad(read && o.TLS != nil && !a.secured(), "TLS goes with rediss:// and rediss+sentinel://")
	return errs
}

// login takes in that of the options.
func (a *address) login(o Options, bad func(is bool, format string, args ...any)) {
	bad(a.password != "" && (o.Password != "" || o.Username != "" || o.PasswordFunc != nil), "give a login either in the URI or in Username and Password or PasswordFunc")
	bad(o.Password != "" && o.PasswordFunc != nil, "PasswordFunc and Password are both given: give one")
	bad(o.Username != "" && o.Password == "" && o.PasswordFunc == nil, "there is a Username without a Password")
	a.user, a.password = cmp.Or(a.user, o.Username), cmp.Or(a.password, o.Password)
}

// own are the settings of a ledger by a URI.
func (l *Ledger) own(o Options) {
	a := l.address
	s := &goredis.Options{Addr: a.hosts[0], Username: a.user, Password: a.password, DB: a.db}
	if current := storekit.NewCurrent("PasswordFunc", o.PasswordFunc, l.clock); current != nil {
		s.CredentialsProviderContext = func(ctx context.Context) (string, string, error) {
			password, err := current.Get(ctx)
			return a.user, password, err
		}
	}
	l.settings = func(context.Context) (*goredis.Options, error) { return s, nil }
	if !a.secured() {
		return
	}
	if l.tls = o.TLS; l.tls == nil {
		l.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	l.tls = l.tls.Clone()
	l.tls.InsecureSkipVerify = l.tls.InsecureSkipVerify || a.skipVerify
}

// checkName checks a prefix or the name of a program.
func checkName(name string) error {
	if !prefixName().MatchString(name) {
		return errors.New("must have 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit")
	}
	return nil
}

// locate is the address of the server that is to be asked: the node of a cluster that has our keys, the primary that
// sentinels name, or the one in the URI.
func (l *Ledger) locate(ctx context.Context) (string, error) {
	if addr := l.elsewhere.Load(); addr != nil {
		return *addr, nil
	}
	if l.address.service != "" || l.failover {
		return l.primaryByName(ctx)
	}
	o, err := l.settings(ctx)
	if err != nil {
		return "", err
	}
	return o.Addr, nil
}
