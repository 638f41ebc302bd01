package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

const (
	// lookAgain is how long a check of account and container counts.
	lookAgain = 10 * time.Minute
	// lookPause is the least time between checks when requests or checks fail.
	lookPause = 30 * time.Second
	// lookPatience is how long a check may take, even if operations still wait for
	// it.
	lookPatience = 15 * time.Second
	// lookWait is how long an operation waits for a check if a connection was found
	// fit before, and lookExpiry how long such a connection is used while checks
	// fail.
	lookWait   = time.Second
	lookExpiry = 2 * time.Hour
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
	mu      sync.Mutex
	current *conn
	// since is when current was found fit.
	since time.Time
	// Another check is due when pause has passed since tried, when the last one began or
	// succeeded: lookAgain after it succeeded, lookPause after it or a request failed, and
	// at once if the account may refuse all reads.
	tried time.Time
	pause time.Duration

	looking *look
	account Account
	closed  bool
}

// due reports whether it is time for another check.
func (k *link) due(c clock.Clock) bool {
	return c.Since(k.tried) >= k.pause && k.looking == nil
}

// look is a check of account and container in progress. Operations stop waiting for
// it when their contexts end; it ends when none is waiting.
type look struct {
	done    chan struct{}
	waiting int
	cancel  context.CancelFunc
	conn    *conn
	err     error
}

// learn records the account's properties, whichever connection they came by. A
// connection that isn't fit is no longer used.
func (k *link) learn(c *conn, a Account) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.account = a
	c.account.Store(&a)
	if k.current != nil && c.ledger.judge(a) != nil {
		k.drop()
	}
}

// doubt causes a check soon, because a request failed as requests do after a failover
// or a change.
func (k *link) doubt(c *conn, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != c {
		return
	}
	k.pause = min(k.pause, lookPause)
	if isStatus(err, http.StatusBadRequest) && c.consistency() != nil {
		// The account may no longer be strongly consistent.
		k.pause = 0
	}
}

// drop takes the connection out of use. Operations in progress continue with it.
func (k *link) drop() {
	k.current.client.Close()
	k.current = nil
}

func (k *link) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.current != nil {
		k.drop()
	}
}

// connected returns a connection that was found fit recently. If another check is due,
// one operation starts it and waits, only for lookWait if there is an earlier
// connection; others continue with that.
func (l *Ledger) connected(ctx context.Context) (*conn, error) {
	k := &l.link
	k.mu.Lock()
	if c := k.current; k.believed(l.clock) && !k.due(l.clock) {
		k.mu.Unlock()
		return c, nil
	}
	w := k.looking
	if w == nil {
		w = l.startLook(ctx)
	}
	w.waiting++
	var enough <-chan time.Time
	if k.believed(l.clock) && k.pause > 0 {
		t := l.clock.Timer(lookWait)
		defer t.Stop()
		enough = t.C
	}
	k.mu.Unlock()

	inTime := true
	select {
	case <-w.done:
	case <-ctx.Done():
	case <-enough:
		inTime = false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !inTime && k.believed(l.clock) {
		// The check continues, because this operation still counts as waiting.
		return k.current, nil
	}
	if w.waiting--; w.waiting == 0 {
		k.abandon(w)
	}
	select {
	case <-w.done:
	default:
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, errors.New("account and container can't be checked")
	}
	if w.err != nil && k.believed(l.clock) && !isHidden(w.err, store.ErrRefused) {
		// It was fit, and the check failed. The next operation tries again.
		return k.current, nil
	}
	return w.conn, w.err
}

// believed reports whether a connection was found fit recently enough to be used while
// it can't be checked.
func (k *link) believed(c clock.Clock) bool {
	return k.current != nil && c.Since(k.since) < lookExpiry
}

// startLook starts a check on a separate goroutine, because the SDK ignores the context
// when it reads the account. Its requests are charged to the operation that caused it.
func (l *Ledger) startLook(ctx context.Context) *look {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &look{done: make(chan struct{}), cancel: cancel}
	l.link.looking, l.link.tried = w, l.clock.Now()
	tooLong := l.clock.AfterFunc(lookPatience, func() {
		l.link.mu.Lock()
		defer l.link.mu.Unlock()
		// Don't wait longer for code that ignores the context, such as a credential.
		l.link.abandon(w)
	})
	go func() {
		defer cancel()
		defer tooLong.Stop()
		c, err := l.inspect(ctx)
		k := &l.link
		k.mu.Lock()
		defer k.mu.Unlock()
		w.conn, w.err = k.settle(l, c, err)
		close(w.done)
		if k.looking == w {
			k.looking = nil
		}
	}()
	return w
}

// abandon ends a check, unless it is over.
func (k *link) abandon(w *look) {
	if k.looking == w {
		k.looking, k.pause = nil, lookPause
	}
	w.cancel()
}

// settle records the result of a check and returns the connection to use.
func (k *link) settle(l *Ledger, c *conn, err error) (*conn, error) {
	if err == nil {
		// Another connection may have learned otherwise since.
		if unfit := l.judge(k.account); unfit != nil {
			c.client.Close()
			c, err = nil, unfit
		}
	}
	k.pause = lookPause
	if err != nil && !isHidden(err, store.ErrRefused) && !errors.Is(err, store.ErrMissing) {
		return c, err
	}
	if k.current != nil {
		k.drop()
	}
	k.current, k.since = c, l.clock.Now()
	k.tried, k.pause = k.since, lookAgain
	if k.closed && c != nil {
		k.drop()
	}
	return c, err
}

// reconnected checks again, however recent the last check is.
func (l *Ledger) reconnected(ctx context.Context) (*conn, error) {
	c, err := l.inspect(ctx)
	k := &l.link
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.settle(l, c, err)
}

// inspect makes a client and checks account and container. A client whose first read
// of the account failed returns that error for five minutes, so a client that isn't
// fit is discarded.
func (l *Ledger) inspect(ctx context.Context) (*conn, error) {
	c, err := l.dial()
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
func (l *Ledger) dial() (*conn, error) {
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
	if c.client, err = l.sign(c, l.address.endpoint, o); err != nil {
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
