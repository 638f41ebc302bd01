package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
	natsio "github.com/nats-io/nats.go"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// passwordVariable is the environment variable with the user's password.
const passwordVariable = "NATS_PASSWORD"

var (
	form       = storekit.URIForm{Schemes: []string{"nats"}, Port: DefaultPort, MostName: 200}
	bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

func init() {
	store.Register("nats", store.Driver{
		Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
			if o.Getenv == nil {
				o.Getenv = os.Getenv
			}
			logins, err := storekit.RenewedURI(o.File, uri, func(uri string) (address, error) {
				a, errs := parseURI(uri)
				a.Password = cmp.Or(a.Password, o.Getenv(passwordVariable))
				return a, errors.Join(errs...)
			})
			options := Options{URI: uri, Clock: o.Clock}
			if err == nil && logins != nil && logins.Now().User != "" {
				options.Connect = []natsio.Option{natsio.UserInfo("", ""), natsio.UserInfoHandler(func() (user, password string) {
					now := logins.Now()
					return now.User, now.Password
				})}
			}
			return open(ctx, options, o.Getenv)
		},
		Redact:  Redact,
		Form:    "nats://USER@HOST:PORT,HOST:PORT/BUCKET",
		Secrets: []store.Secret{{Variable: passwordVariable}},
		Checks: []store.Check{
			{Name: CheckSync, Asks: "do the servers sync records before they acknowledge them?"},
			{Name: CheckReplicas, Asks: "do several servers keep the bucket, on disk, and do all follow?"},
			{Name: CheckLimits, Asks: "is there space left in the account and the bucket?"},
		},
	})
}

// address is what a URI says.
type address struct {
	storekit.DatabaseURI

	creds           string
	tls, syncAlways bool
	skew            time.Duration
}

// parseURI takes a URI apart, and returns all its faults.
func parseURI(uri string) (a address, errs []error) {
	a.skew = DefaultServerSkew
	errs = a.Read(uri, form, func(name, value string) (err error) {
		switch name {
		case "creds":
			a.creds, err = storekit.Text(value)
		case "tls":
			a.tls, err = storekit.Truth(value)
		case "syncAlways":
			a.syncAlways, err = storekit.Truth(value)
		case "serverSkew":
			a.skew, err = storekit.SkewOf(value)
		default:
			err = errors.New("is unknown: use creds, tls, serverSkew or syncAlways")
		}
		return err
	})
	if len(errs) == 0 && !bucketName.MatchString(a.Database) {
		errs = append(errs, errors.New("uri: the bucket must be made of letters, digits, hyphens and underscores"))
	}
	if a.creds != "" && a.User != "" {
		errs = append(errs, errors.New("uri: creds goes without a user"))
	}
	return a, errs
}

// Redact returns a URI that may be shown: with *** in place of the password, and no more than the scheme of one that can't be
// read.
func Redact(uri string) string {
	a, errs := parseURI(uri)
	return a.DatabaseURI.Redact(uri, form, errors.Join(errs...))
}

// Open checks the options, and makes a ledger. It reports all that is wrong with them at once. It makes no connection: the first
// operation does, and a server that can't be reached shows in the operations.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	return open(ctx, o, func(string) string { return "" })
}

func open(_ context.Context, o Options, getenv func(name string) string) (*Ledger, error) {
	a, errs := parseURI(o.URI)
	if a.User != "" {
		a.Password = cmp.Or(a.Password, getenv(passwordVariable))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("nats: open: %w", err)
	}
	b := &bucket{at: a, clock: o.Clock}
	if b.clock == nil {
		b.clock = clock.New()
	}
	b.options = append(b.connection(), o.Connect...)
	var secrets storekit.Secrets
	secrets.Hide(a.Password)
	secrets.Publish(append(a.Addresses(), a.Database, a.User)...)
	b.checks = &storekit.Checks{Rows: b.rows(), Clock: b.clock}
	fitness := storekit.NewFitness(b.clock, b.checks.Fit)
	b.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "nats", Secrets: secrets, Meaning: meaning, Fitness: fitness})
	b.checks.Runner = b.runner
	return &Ledger{
		storekit.OnObjects(storekit.ObjectsOptions{Objects: b, Runner: b.runner, Create: b.create, Fitness: fitness}), b,
	}, nil
}

// connection are the options of a connection that comes back by itself, for as long as the ledger is open, and sends nothing that
// was to be sent before it did.
func (b *bucket) connection() []natsio.Option {
	o := []natsio.Option{
		natsio.Name("slotlease"), natsio.Timeout(dialTime), natsio.MaxReconnects(-1), natsio.ReconnectWait(reconnectWait),
		natsio.ReconnectJitter(reconnectWait, reconnectWait), natsio.ReconnectBufSize(-1), natsio.IgnoreAuthErrorAbort(),
		natsio.PingInterval(pingTime), natsio.MaxPingsOutstanding(2), natsio.ErrorHandler(b.refused), natsio.DisconnectErrHandler(b.lost),
	}
	if b.at.User != "" {
		o = append(o, natsio.UserInfo(b.at.User, b.at.Password))
	}
	if b.at.creds != "" {
		o = append(o, natsio.UserCredentials(b.at.creds))
	}
	if b.at.tls {
		o = append(o, natsio.Secure())
	}
	return o
}

// servers are the URLs of the servers.
func (a address) servers() string { return "nats://" + strings.Join(a.Addresses(), ",nats://") }
