package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/benbjohnson/clock"

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

// Options of Open. URI is required.
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
	// Username and Password log in, in place of those in the URI. Without a Username the user is default.
	Username, Password string
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
	for s, form := range map[string]string{
		scheme:            "redis://HOST/DATABASE",
		schemeTLS:         "rediss://HOST/DATABASE",
		schemeSentinel:    "redis+sentinel://HOST,HOST/SERVICE/DATABASE",
		schemeSentinelTLS: "rediss+sentinel://HOST,HOST/SERVICE/DATABASE",
	} {
		store.Register(s, store.Driver{
			Open: openURI, Redact: Redact, Form: form,
			Secrets: []store.Secret{{Variable: passwordVariable, Shared: true}, {Variable: sentinelVariable}},
		})
	}
}

// login is a user and a password.
type login struct{ user, password string }

// openURI is Open for store.Open. A password that isn't in the URI is that of REDISCLI_AUTH, and that of sentinels
// REDIS_SENTINEL_PASSWORD.
func openURI(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	options := Options{URI: uri, ReadOnly: o.ReadOnly, Clock: o.Clock}
	if prefixName.MatchString(o.AppName) { // It is for information.
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
	return l, nil
}

// Open checks the options and makes a ledger of them. It reports all that is wrong with them at once, without any
// secret. It sends nothing: a server that can't be reached shows in the operations, and they work once it can.
func Open(_ context.Context, o Options) (*Ledger, error) {
	a, err := parseURI(o.URI)
	errs := []error{err}
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("options: "+format, args...)) }
	a.prefix, err = document.Pick("prefix", o.Prefix, a.prefix, DefaultPrefix, checkPrefix)
	errs = append(errs, err)
	switch {
	case a.password != "" && (o.Password != "" || o.Username != ""):
		bad("give a login either in the URI or in Username and Password")
	case o.Username != "" && o.Password == "":
		bad("there is a Username without a Password")
	case o.Password != "":
		a.user, a.password = o.Username, o.Password
	}
	if a.replicas = pick(bad, "replicas", a.replicas, o.Replicas); a.replicas < 0 || a.replicas > mostReplicas {
		bad("Replicas %d must be 0 to %d", a.replicas, mostReplicas)
	}
	a.wait = cmp.Or(pick(bad, "replicaWait", a.wait, o.ReplicaWait), DefaultReplicaWait)
	if a.wait < leastWait || a.wait > mostWait {
		bad("ReplicaWait %v must be %v to %v", a.wait, leastWait, mostWait)
	}
	if a.skew = pick(bad, "serverSkew", a.skew, o.ServerSkew); a.skew < 0 || a.skew > mostSkew {
		bad("ServerSkew %v must be 0 to %v", a.skew, mostSkew)
	}
	a.unpersistent = a.unpersistent || o.UnsafeNoPersistence
	if errs[0] == nil && !a.sentinels() && (o.SentinelUsername != "" || o.SentinelPassword != "") {
		bad("SentinelUsername and SentinelPassword go with redis+sentinel:// and rediss+sentinel://")
	}
	appName := cmp.Or(o.AppName, DefaultPrefix)
	if !prefixName.MatchString(appName) {
		bad("the AppName must have 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit")
	}
	if o.TLS != nil && errs[0] == nil && !a.secured() {
		bad("TLS goes with rediss:// and rediss+sentinel://")
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("redis: open: %w", err)
	}
	l := &Ledger{address: a, clock: o.Clock, readOnly: o.ReadOnly, names: newNames(a.prefix), appName: appName, patience: patience, sentinel: login{o.SentinelUsername, o.SentinelPassword}}
	if l.clock == nil {
		l.clock = clock.New()
	}
	if a.secured() {
		if l.tls = o.TLS; l.tls == nil {
			l.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		l.tls = l.tls.Clone()
		l.tls.InsecureSkipVerify = l.tls.InsecureSkipVerify || a.skipVerify
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

func checkPrefix(prefix string) error {
	if !prefixName.MatchString(prefix) {
		return errors.New("options: the prefix must have 1 to 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit")
	}
	return nil
}

// pick chooses between a value in the URI and one in the options, of which either may be zero.
func pick[T comparable](bad func(format string, args ...any), name string, uri, option T) T {
	var none T
	if uri != none && option != none && uri != option {
		bad("%s %v in the URI and %v in Options: give one", name, uri, option)
	}
	if option != none {
		return option
	}
	return uri
}

// locate is the address of the server that is to be asked: the node of a cluster that has our keys, the primary that
// sentinels name, or the one in the URI.
func (l *Ledger) locate(ctx context.Context) (string, error) {
	if addr := l.elsewhere.Load(); addr != nil {
		return *addr, nil
	}
	if l.address.service == "" {
		return l.address.hosts[0], nil
	}
	return l.primaryByName(ctx)
}
