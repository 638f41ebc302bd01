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
	// lookAgain is how long it is believed that account and container are fit.
	lookAgain = 10 * time.Minute
	// lookPause is how long to leave it, at least, when requests or looks fail.
	lookPause = 30 * time.Second
	// lookPatience is how long a look may take, even if there is always somebody who
	// waits for it.
	lookPatience = 15 * time.Second
	// lookWait is how long an operation waits for a look if there is a connection
	// that was found fit before, and lookExpiry how long such a one is used while
	// looks fail.
	lookWait   = time.Second
	lookExpiry = 2 * time.Hour
)

// conn is a client of the SDK's that was found fit.
type conn struct {
	ledger    *Ledger
	client    *azcosmos.Client
	container *azcosmos.ContainerClient
	// life ends when the connection didn't come about.
	life context.Context
	end  context.CancelFunc
	// timeless is set when the server doesn't know GetCurrentTimestamp.
	timeless atomic.Bool
	// account is what the account said last by this connection, or nil.
	account atomic.Pointer[Account]
}

// consistency is what reads ask for: strong, where the account is. Azure refuses
// to read more strongly than the account's default.
func (c *conn) consistency() *azcosmos.ConsistencyLevel {
	if a := c.account.Load(); a != nil && a.Consistency == string(azcosmos.ConsistencyLevelStrong) {
		return azcosmos.ConsistencyLevelStrong.ToPtr()
	}
	return nil
}

// link keeps the connection in use, and makes it anew.
type link struct {
	mu      sync.Mutex
	current *conn
	// since is when current was found fit, and tried when it was last looked at; it
	// is in doubt if requests failed, and weakened if reads may be refused since the
	// account is less consistent than it was.
	since, tried      time.Time
	doubted, weakened bool
	looking           *look
	account           Account
	closed            bool
}

// due says whether it is time to look again.
func (k *link) due(c clock.Clock) bool {
	return (k.doubted || c.Since(k.since) >= lookAgain) && c.Since(k.tried) >= lookPause && k.looking == nil
}

// look is a look at account and container that is under way. Those who wait for
// it leave when their contexts end; it ends when the last has left.
type look struct {
	done    chan struct{}
	waiting int
	cancel  context.CancelFunc
	conn    *conn
	err     error
}

// learn takes in the account's properties, by whatever connection they came. What
// isn't fit is out of use at once.
func (k *link) learn(c *conn, a Account) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.account = a
	c.account.Store(&a)
	if k.current != nil && c.ledger.judge(a) != nil {
		k.drop()
	}
}

// doubt has account and container looked at soon, since a request failed as
// requests do after a failover, or when something was changed.
func (k *link) doubt(c *conn, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != c {
		return
	}
	k.doubted = true
	if isStatus(err, http.StatusBadRequest) && c.consistency() != nil {
		// The account may not be strongly consistent any more, and refuse all reads.
		k.tried, k.weakened = time.Time{}, true
	}
}

// drop takes the connection out of use. Operations under way end as they will.
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

// connected returns a connection that was found fit lately. Where it is time to
// look again, one operation does and waits, for lookWait if it can do without, and
// others go on.
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
	if k.believed(l.clock) && !k.weakened {
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
		// The look goes on, since this one is still counted as waiting.
		return k.current, nil
	}
	if w.waiting--; w.waiting == 0 && k.looking == w {
		k.looking = nil
		w.cancel()
	}
	select {
	case <-w.done:
	default:
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, errors.New("account and container can't be looked at")
	}
	if w.err != nil && k.believed(l.clock) && !isHidden(w.err, store.ErrRefused) {
		// It was fit, and could not be looked at just now. The next operation tries
		// again.
		return k.current, nil
	}
	return w.conn, w.err
}

// believed says whether there is a connection that was found fit not too long ago
// to be used while it can't be looked at.
func (k *link) believed(c clock.Clock) bool {
	return k.current != nil && c.Since(k.since) < lookExpiry
}

// startLook begins a look on a goroutine of its own, since the SDK heeds no
// context where it reads the account. Its requests are charged to the operation
// that gave rise to it.
func (l *Ledger) startLook(ctx context.Context) *look {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &look{done: make(chan struct{}), cancel: cancel}
	l.link.looking, l.link.tried = w, l.clock.Now()
	tooLong := l.clock.AfterFunc(lookPatience, func() {
		l.link.mu.Lock()
		defer l.link.mu.Unlock()
		// Whoever doesn't heed the context, such as a credential, is waited for no more.
		if l.link.looking == w {
			l.link.looking = nil
		}
		cancel()
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

// settle takes in what a look found, and returns what that comes to.
func (k *link) settle(l *Ledger, c *conn, err error) (*conn, error) {
	if err == nil {
		// Another connection may have been told otherwise since.
		if unfit := l.judge(k.account); unfit != nil {
			c.client.Close()
			c, err = nil, unfit
		}
	}
	if err != nil && !isHidden(err, store.ErrRefused) && !errors.Is(err, store.ErrMissing) {
		return c, err
	}
	if k.current != nil {
		k.drop()
	}
	k.current, k.since, k.doubted, k.weakened = c, l.clock.Now(), false, false
	if k.closed && c != nil {
		k.drop()
	}
	return c, err
}

// reconnected looks again, however lately somebody has.
func (l *Ledger) reconnected(ctx context.Context) (*conn, error) {
	c, err := l.inspect(ctx)
	k := &l.link
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.settle(l, c, err)
}

// inspect makes a client and looks whether account and container are fit. A
// client whose first read of the account failed says so for five minutes, and
// is of no use; so one that isn't fit is thrown away.
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

// look reads the container, and with it, by the SDK's doing, the account.
func (l *Ledger) look(ctx context.Context, c *conn) error {
	reply, err := c.container.Read(ctx, nil)
	a := c.account.Load()
	switch {
	case a == nil && err == nil:
		return fmt.Errorf("%w: the account's properties weren't told", store.ErrRefused)
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
		// Without the right to read it, a container can't be judged.
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
		// Whether to try again is decided here, where the deadline is known.
		Retry:                           policy.RetryOptions{MaxRetries: -1},
		Telemetry:                       policy.TelemetryOptions{ApplicationID: "slotlease"},
		PerCallPolicies:                 []policy.Policy{datingPolicy{l}},
		InsecureAllowCredentialWithHTTP: l.address.plain,
	}}
	var err error
	if c.client, err = l.sign(c, l.address.endpoint, o); err != nil {
		return nil, err
	}
	if c.container, err = c.client.NewContainer(l.address.database, l.address.container); err != nil {
		c.client.Close()
		return nil, err
	}
	c.life, c.end = context.WithCancel(context.Background())
	return c, nil
}
