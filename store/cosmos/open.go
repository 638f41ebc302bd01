package cosmos

import (
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
	a, key, errs := o.address()
	bad := func(err error) { errs = append(errs, err) }
	var err error
	l.skew, err = storekit.ServerSkew(o.ServerSkew, a.skew, defaultSkew)
	bad(err)
	a.database, err = document.Pick("database", o.Database, a.database, DefaultDatabase, checkName("database"))
	bad(err)
	a.container, err = document.Pick("container", o.Container, a.container, DefaultContainer, checkName("container"))
	bad(err)
	l.offer, err = a.offer.properties(offer{o.Throughput, o.Autoscale, o.Serverless})
	bad(err)
	bad(checkCredentials(key, o, a))
	if a.skipVerify && o.Transport != nil {
		bad(errors.New("options: insecureSkipVerify has no effect on a Transport of your own"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("cosmos: open: %w", err)
	}
	l.address = a
	l.unsafe = o.UnsafeUnverifiedAccount || a.unsafe
	l.keyed = key != "" || o.KeyFunc != nil
	l.secrets.Hide(key)
	l.secrets.Publish(a.host, a.database, a.container)
	l.fitness = storekit.NewFitness(l.clock, l.check)
	l.runner = storekit.NewRunner(storekit.RunnerOptions{Store: "cosmos", Secrets: l.secrets, Meaning: l.meaning})
	if l.transport == nil {
		l.own = storekit.NewHTTPClient(a.skipVerify)
		l.transport = l.own
	}
	if l.sign, err = newSigner(key, o, storekit.NewCurrent("KeyFunc", o.KeyFunc, l.clock)); err != nil {
		return nil, l.runner.Failed(ctx, "open", "", explain(err))
	}
	return l, nil
}

// address reads the URI or the connection string, or a URI that names no account beside the latter.
func (o Options) address() (a address, key string, errs []error) {
	bad := func(err error) { errs = append(errs, err) }
	key = o.Key
	switch connected := o.ConnectionString != ""; {
	case o.URI != "" && !connected:
		var err error
		a, err = parseURI(o.URI)
		bad(err)
	case !connected || o.URI != "" && !nameless(o.URI):
		bad(errors.New("options: set either URI or ConnectionString, or beside it a URI that names no account, cosmos:///DATABASE/CONTAINER"))
	case o.Key != "" || o.KeyFunc != nil || o.Credential != nil:
		bad(errors.New("options: Key, KeyFunc and Credential go with URI; ConnectionString has a key of its own"))
	default:
		if o.URI != "" {
			if _, faults := a.read(o.URI); len(faults) > 0 {
				bad(fmt.Errorf("the URI must be of the form cosmos:///DATABASE/CONTAINER?throughput=400: %w", errors.Join(faults...)))
			}
			for name, is := range map[string]bool{"insecureHTTP": a.plain, "insecureSkipVerify": a.skipVerify} {
				if is {
					bad(fmt.Errorf("parameter %s goes with an account in the URI only", name))
				}
			}
		}
		var err error
		key, err = a.parseConnectionString(o.ConnectionString)
		bad(err)
	}
	return a, key, errs
}
