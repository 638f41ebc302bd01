package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

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
			l.c.readOnly = o.ReadOnly
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
	c.a = a
	errs = append(errs, c.identify(o, getenv), c.secure(o))
	skew, err := storekit.ServerSkew(o.ServerSkew, a.skew, DefaultServerSkew)
	if c.oneMember = o.OneMember || a.oneMember; !c.oneMember {
		c.skew = skew
	} else if err == nil && (o.ServerSkew != 0 || a.skew != 0) {
		err = errors.New("options: one member has one clock: give either OneMember or ServerSkew")
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("etcd: open: %w", err)
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.secrets.Hide(c.password)
	c.secrets.Publish(append(a.hosts, a.prefix, c.user)...)
	// No proxy but that of the environment, which gRPC's connections go through, too.
	web := storekit.NewTransport(nil)
	if c.files != nil {
		storekit.RenewTLS(web, c.files, c.clock)
	}
	web.DialContext = storekit.DialUntil(c.life, web.DialContext)
	c.web = storekit.Direct(web)
	if err := c.dial(); err != nil {
		c.end()
		return nil, fmt.Errorf("etcd: open: %s", storekit.OneLine(c.secrets.Scrub(err.Error())))
	}
	fitness := storekit.NewFitness(c.clock, c.check)
	c.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "etcd", Secrets: c.secrets, Meaning: c.meaning, Fitness: fitness})
	return &Ledger{
		storekit.OnObjects(storekit.ObjectsOptions{Objects: c, Runner: c.runner, Folder: c.folder(), Fitness: fitness}),
		c,
	}, nil
}

// identify finds the user and the password.
func (c *cluster) identify(o Options, getenv func(name string) string) (err error) {
	c.user, c.password = cmp.Or(o.User, c.a.user), o.Password
	var given []string
	for name, is := range map[string]bool{"Password": o.Password != "", "PasswordFunc": o.PasswordFunc != nil, "the URI's passwordFile": c.a.passwordFile != ""} {
		if is {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	switch {
	case o.User != "" && c.a.user != "" && o.User != c.a.user:
		return errors.New("options: User in Options and another in the URI: give one")
	case len(given) > 1:
		return fmt.Errorf("options: %s are given: give one", strings.Join(given, " and "))
	case o.PasswordFunc != nil && c.user == "":
		return errors.New("options: PasswordFunc goes with a User, in Options or in the URI")
	case o.PasswordFunc != nil:
		c.current = storekit.NewCurrent("PasswordFunc", o.PasswordFunc, c.clock)
		return nil
	case c.a.passwordFile != "":
		path := c.a.passwordFile
		c.passwords, err = storekit.NewRenewed(func() (string, error) { return readPassword(path) }, path)
		c.password = c.passwords.Now()
		return err
	case c.password == "" && c.user != "":
		c.password = getenv(passwordVariable)
	}
	if (c.user == "") != (c.password == "") {
		return fmt.Errorf("options: a user needs a password, and a password a user: in Options, or user and passwordFile in the URI, or %s in the environment", passwordVariable)
	}
	return nil
}

// secure finds the configuration of TLS.
func (c *cluster) secure(o Options) (err error) {
	switch {
	case o.TLS != nil && !c.a.encrypted:
		return errors.New("options: TLS goes with etcds://")
	case o.TLS != nil && (c.a.ca != "" || c.a.cert != "" || c.a.serverName != ""):
		return errors.New("options: TLS in Options, and ca, cert or serverName in the URI: give one")
	case o.TLS != nil:
		c.files, err = storekit.RenewedTLS(o.TLS, storekit.File{}, storekit.File{}, storekit.File{})
	case c.a.encrypted:
		base := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.a.serverName}
		c.files, err = storekit.RenewedTLS(base, storekit.File{Name: "ca", Path: c.a.ca}, storekit.File{Name: "cert", Path: c.a.cert}, storekit.File{Name: "key", Path: c.a.key})
	}
	if c.files != nil {
		c.tls = c.files.Now()
	}
	return err
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
