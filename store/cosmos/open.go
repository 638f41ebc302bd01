package cosmos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

// defaultSkew is how far the servers' clocks are assumed to be apart.
const defaultSkew = 250 * time.Millisecond

// Open checks the options and makes a ledger of them. It reports everything that
// is wrong with them at once. It waits for no connection: an account that can't
// be reached shows in the operations, and they work once it can.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	l := &Ledger{clock: o.Clock, transport: o.Transport}
	if l.clock == nil {
		l.clock = clock.New()
	}
	l.dating = storekit.NewDating(l.clock)
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
	l.fitness = storekit.NewFitness(l.clock, l.check)
	l.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "cosmos", Secrets: l.secrets, Meaning: meaning})
	if l.transport == nil {
		l.own = storekit.NewHTTPClient(a.skipVerify)
		l.transport = l.own
	}
	if l.sign, err = newSigner(key, o); err != nil {
		return nil, l.runner.Failed(ctx, "open", "", explain(err))
	}
	return l, nil
}
