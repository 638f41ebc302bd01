package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
)

// conn is an SDK client whose account and container were found fit.
type conn struct {
	ledger    *Ledger
	client    *azcosmos.Client
	container *azcosmos.ContainerClient
	roster    *azcosmos.ContainerClient // isn't checked
	// life ends if the connection isn't used after all.
	life context.Context
	end  context.CancelFunc
	// timeless is set when the server doesn't know GetCurrentTimestamp.
	timeless atomic.Bool
	// examines lets an account be looked at that is refused.
	examines bool
	// account has the newest properties that came by this connection, or is nil.
	account atomic.Pointer[Account]
}

// itself is the connection, for tasks that need no other.
func (c *conn) itself(context.Context) (*conn, error) { return c, nil }

// consistency is the level of reads: Strong if the account's default is. Azure refuses
// to read more strongly than the default.
func (c *conn) consistency() *azcosmos.ConsistencyLevel {
	if a := c.account.Load(); a != nil && a.Consistency == string(azcosmos.ConsistencyLevelStrong) {
		return azcosmos.ConsistencyLevelStrong.ToPtr()
	}
	return nil
}

// link keeps the connection in use, and replaces it.
type link struct {
	mu sync.Mutex
	// current was found fit. It is nil before the first check, and when unfit says why.
	current *conn
	unfit   error
	account Account
	closed  bool
}

// learn records the account's properties, whichever connection they came by. A
// connection that isn't fit is no longer used.
func (k *link) learn(c *conn, a Account) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.account = a
	c.account.Store(&a)
	if unfit := c.ledger.judge(a); unfit != nil && k.current != nil {
		k.use(nil, unfit)
		c.ledger.fitness.Forget()
	}
}

// use replaces the connection, by none if c is nil, which unfit explains. Operations in progress continue with
// the earlier one. The caller holds mu.
func (k *link) use(c *conn, unfit error) {
	if k.current != nil {
		k.current.client.Close()
	}
	if k.current, k.unfit = c, unfit; k.closed && c != nil {
		k.use(nil, store.ErrClosed)
	}
}

func (k *link) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.use(nil, store.ErrClosed)
}

// connected returns a connection that was found fit recently.
func (l *Ledger) connected(ctx context.Context) (*conn, error) {
	return l.afterCheck(l.fitness.Ensure(ctx))
}

// reconnected checks again, however recent the last check is.
func (l *Ledger) reconnected(ctx context.Context) (*conn, error) {
	return l.afterCheck(l.fitness.Check(ctx))
}

// afterCheck returns the connection in use, unless a check has failed.
func (l *Ledger) afterCheck(err error) (*conn, error) {
	if err != nil {
		return nil, err
	}
	k := &l.link
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current, k.unfit // Which may be new since the check.
}

// doubt causes a check soon, because a request failed as requests do after a failover
// or a change.
func (l *Ledger) doubt(c *conn, err error) {
	l.link.mu.Lock()
	current := l.link.current == c
	l.link.mu.Unlock()
	switch {
	case !current:
	case isStatus(err, http.StatusUnauthorized):
		l.fitness.Suspect() // Perhaps the key was replaced: a new connection asks for it.
	case isStatus(err, http.StatusBadRequest) && c.consistency() != nil:
		// The account may no longer be strongly consistent, and refuse all reads.
		l.fitness.Suspect()
	default:
		l.fitness.Doubt()
	}
}

// check makes a connection, and uses it from now on if account and container are fit. It is what Fitness calls.
func (l *Ledger) check(ctx context.Context) error {
	c, err := l.inspect(ctx)
	err = explain(err)
	k := &l.link
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		// Another connection may have learned otherwise since.
		if err = l.judge(k.account); err != nil {
			c.client.Close()
			c = nil
		}
	}
	if err == nil || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrMissing) {
		k.use(c, err)
	}
	if c == nil && k.unfit != nil {
		l.fitness.Forget() // A newer check, after Init created the container, may have ended before this one.
	}
	return err
}

// inspect makes a client and checks account and container. A client whose first read
// of the account failed returns that error for five minutes, so a client that isn't
// fit is discarded.
func (l *Ledger) inspect(ctx context.Context) (*conn, error) {
	c, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	stillWanted := context.AfterFunc(ctx, c.end)
	if err = l.look(ctx, c); err == nil && stillWanted() {
		return c, nil
	}
	c.end()
	c.client.Close()
	if err == nil {
		err = ctx.Err()
	}
	return nil, fmt.Errorf("inspect account and container: %w", err)
}

// look reads the container; the SDK then also reads the account.
func (l *Ledger) look(ctx context.Context, c *conn) error {
	reply, err := c.container.Read(ctx, nil)
	a := c.account.Load()
	switch {
	case a == nil && err == nil:
		return fmt.Errorf("%w: the account's properties are unknown", store.ErrRefused)
	case a == nil:
		return err
	}
	if unfit := l.judge(*a); unfit != nil {
		return unfit
	}
	switch {
	case err == nil:
		if p := reply.ContainerProperties; p != nil {
			l.container.Store(p.ResourceID)
		}
		return l.judgeContainer(reply.ContainerProperties)
	case isStatus(err, http.StatusForbidden) && l.unsafe:
		// Without the right to read it, a container can't be checked.
		return nil
	case isStatus(err, http.StatusNotFound):
		return fmt.Errorf("%w: no container %s/%s: create it, as leasectl init does: %w", store.ErrMissing, l.address.database, l.address.container, err)
	}
	return err
}

// dial makes a client. It sends nothing yet.
func (l *Ledger) dial(ctx context.Context) (*conn, error) {
	c := &conn{ledger: l}
	o := &azcosmos.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: c,
		// Retries are decided here, where the deadline is known.
		Retry:                           policy.RetryOptions{MaxRetries: -1},
		Telemetry:                       policy.TelemetryOptions{ApplicationID: "slotlease"},
		PerCallPolicies:                 []policy.Policy{datingPolicy{l}},
		InsecureAllowCredentialWithHTTP: l.address.plain,
	}}
	var err error
	if c.client, err = l.sign(ctx, c, l.address.endpoint, o); err != nil {
		return nil, err
	}
	c.container, err = c.client.NewContainer(l.address.database, l.address.container)
	if err == nil {
		c.roster, err = c.client.NewContainer(l.address.database, l.address.container+rosterSuffix)
	}
	if err != nil {
		c.client.Close()
		return nil, err
	}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}
