package mongo

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/skew"
)

const (
	// askWithin is how long a member has to show its clock: for a new connection with TLS it
	// takes four round trips.
	askWithin = 1500 * time.Millisecond
	// leastGrace and mostGrace bound how long a stamp waits for the newest clock of a member
	// whose clock was read some seconds ago, if it waits at all: the answer counts next time, too.
	leastGrace = 10 * time.Millisecond
	mostGrace  = 250 * time.Millisecond
)

// members measures how far the clocks of a replica set's electable members are apart. Any of
// them may have given another worker its time, and any may be the next to give it. So each worker
// asks all of them: then what it takes for store time includes all of their clocks, and so what
// any other worker took for it.
//
// They are asked when a stamp is asked for, at the same time. A stamp waits for those of which
// nothing is known of late, and for one that has failed only for a moment and after some time.
type members struct {
	clock clock.Clock
	local func() time.Duration
	// dial connects to a member; nil if we can't, because the client is the caller's.
	dial dialFunc

	ctx   context.Context // the ledger's life
	close context.CancelFunc
	asks  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	set    string
	hosts  []string      // as of the newest hello, without the primary
	heard  time.Duration // when that came
	clocks skew.Clocks
	under  map[string]chan struct{} // closed at the end of the ask that is under way
	conns  map[string]net.Conn      // of members that aren't being asked
	trips  map[string]time.Duration // of the newest answers
	why    map[string]error         // by the members whose newest ask failed
	strays string
}

func newMembers(c clock.Clock, assumed time.Duration, dial dialFunc) *members {
	m := &members{
		clock: c, local: localClock(c), dial: dial, clocks: skew.Clocks{Assumed: assumed},
		under: map[string]chan struct{}{}, conns: map[string]net.Conn{}, trips: map[string]time.Duration{}, why: map[string]error{},
	}
	m.ctx, m.close = context.WithCancel(context.Background())
	return m
}

// localClock reads boot time if the clock has it, which goes on while the machine is suspended.
func localClock(c clock.Clock) func() time.Duration {
	if b, ok := c.(interface{ Boottime() time.Duration }); ok {
		return b.Boottime
	}
	origin := c.Now()
	return func() time.Duration { return c.Since(origin) }
}

// askAhead asks the members that the newest hello named, so that they answer while the primary
// does.
func (m *members) askAhead() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ask()
}

// ask begins to ask those that should be asked, and returns what to wait for: until it is closed,
// or no longer than grace.
func (m *members) ask() (until, briefly []chan struct{}, grace time.Duration) {
	at := m.local()
	for _, host := range m.hosts {
		need := m.clocks.Need(host, at)
		if need == skew.Nothing || m.closed {
			continue
		}
		done := m.under[host]
		if done == nil {
			done = make(chan struct{})
			m.under[host] = done
			set, conn := m.set, m.conns[host]
			delete(m.conns, host)
			m.asks.Go(func() { m.askOne(host, set, conn, done) })
		}
		switch {
		case need == skew.Waiting:
			until = append(until, done)
		case need == skew.Trying:
			briefly, grace = append(briefly, done), mostGrace
		case !m.clocks.Failed(host) && 2*m.clocks.Widened(host, at) > m.trips[host]:
			// Waiting makes the stamp uncertain by a trip, not waiting makes it so by that.
			briefly = append(briefly, done)
			grace = max(grace, 4*m.trips[host])
		}
	}
	return until, briefly, min(max(grace, leastGrace), mostGrace)
}

// askOne asks a member over the connection that there is, else, or if that is closed, over a new one.
func (m *members) askOne(host, set string, conn net.Conn, done chan struct{}) {
	defer close(done)
	// Without a date, which the net package would compare with the time of day.
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	limit := m.clock.AfterFunc(askWithin, cancel)
	defer limit.Stop()
	var r skew.Reading
	var err error
	if conn != nil {
		if r, err = m.read(ctx, conn, host, set); err != nil {
			_ = conn.Close()
			conn = nil
		}
	}
	if conn == nil {
		if conn, err = m.dial(ctx, host); err == nil {
			r, err = m.read(ctx, conn, host, set)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.under, host)
	if err != nil {
		m.clocks.Fail(host, m.local())
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer within %v", askWithin)
		}
		m.why[host] = err
	} else {
		delete(m.why, host)
		m.clocks.Read(host, r)
		m.trips[host] = r.Received - r.Sent
	}
	switch {
	case conn == nil:
	case err != nil || m.closed || !slices.Contains(m.hosts, host):
		_ = conn.Close()
	default:
		m.conns[host] = conn
	}
}

// apart takes in the primary's hello, which was sent and received at local readings, and returns
// how far the clock of any member is from that of the primary. It isn't known (ok is false) if the
// primary's clock was set, or the machine was suspended, since: then the primary is to be asked
// again.
func (m *members) apart(ctx context.Context, g greeting, sent, received time.Duration) (_ time.Duration, ok bool, err error) {
	m.mu.Lock()
	m.keep(g, sent, received)
	m.clocks.Read(g.me, skew.Reading{Time: g.time, Granularity: time.Millisecond, Sent: sent, Received: received})
	until, briefly, grace := m.ask()
	m.mu.Unlock()
	if err := m.wait(ctx, until, briefly, grace); err != nil {
		return 0, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := m.local()
	apart, ok := m.clocks.Apart(g.me, at)
	if !g.named {
		apart = max(apart, m.clocks.Assumed)
	}
	m.strays = describe(m.clocks.Strays(at), m.clocks.Assumed)
	return apart, ok, nil
}

// wait waits until some asks are over, and for others no longer than grace.
func (m *members) wait(ctx context.Context, until, briefly []chan struct{}, grace time.Duration) error {
	for _, done := range until {
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("read the clocks of all members: %w", ctx.Err())
		}
	}
	if len(briefly) == 0 {
		return nil
	}
	timer := m.clock.Timer(grace)
	defer timer.Stop()
	for _, done := range briefly {
		select {
		case <-done:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil // What is known will do.
		}
	}
	return nil
}

// keep takes in which members can be elected. What was sent before the newest hello came may be
// older than that, and removes none.
func (m *members) keep(g greeting, sent, received time.Duration) {
	m.set = g.set
	hosts := slices.Clone(g.hosts)
	if sent < m.heard {
		hosts = append(hosts, m.hosts...)
	}
	slices.Sort(hosts)
	m.hosts = slices.DeleteFunc(slices.Compact(hosts), func(host string) bool { return host == g.me })
	m.heard = max(m.heard, received)
	m.clocks.Keep(append(slices.Clone(m.hosts), g.me))
	maps.DeleteFunc(m.why, func(host string, _ error) bool { return !slices.Contains(m.hosts, host) })
	for host, conn := range m.conns {
		if !slices.Contains(m.hosts, host) {
			_ = conn.Close()
			delete(m.conns, host)
		}
	}
}

// end ends all asks and connections.
func (m *members) end() {
	m.close()
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.asks.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	for host, conn := range m.conns {
		_ = conn.Close()
		delete(m.conns, host)
	}
}
