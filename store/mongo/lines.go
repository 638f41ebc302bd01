package mongo

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store/storekit"
)

// lines are the connections of a client of our own. The driver's Disconnect waits for the heartbeat
// of each server, and doesn't interrupt one that has just begun: that lasts for 10 s, or for as
// long as a host lets a connection wait. Once a server's pool is closed, only heartbeats still use
// connections to it, so these are closed then, too.
type lines struct {
	options.ContextDialer
	closing atomic.Bool

	mu   sync.Mutex
	over bool // for all servers
	// ends are done, by server, when its connections are to end.
	ends map[string]*end
}

type end struct {
	context.Context
	now context.CancelFunc
}

// linesOf makes a client with these options dial by lines.
func linesOf(o *options.ClientOptions) *lines {
	n := &lines{ContextDialer: o.Dialer, ends: map[string]*end{}}
	if n.ContextDialer == nil {
		n.ContextDialer = &net.Dialer{}
	}
	o.SetDialer(n).SetPoolMonitor(&event.PoolMonitor{Event: func(e *event.PoolEvent) {
		// A server that leaves the set may be back before the driver is done with its pool.
		if e.Type == event.ConnectionPoolClosed && n.closing.Load() {
			n.end(e.Address).now()
		}
	}})
	return n
}

func (n *lines) end(server string) *end {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ends[server] == nil {
		ctx, cancel := context.WithCancel(context.Background())
		n.ends[server] = &end{ctx, cancel}
		if n.over {
			cancel()
		}
	}
	return n.ends[server]
}

// endAll ends all connections, once the driver has no use for any. Disconnect doesn't wait for the
// heartbeat of a server that has left the set, or whose name in the URI isn't the set's own.
func (n *lines) endAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
	for _, e := range n.ends {
		e.now()
	}
}

// DialContext connects to a server. The driver calls it.
func (n *lines) DialContext(ctx context.Context, network, server string) (net.Conn, error) {
	end := n.end(server)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(end, cancel)()
	return storekit.DialUntil(end, n.ContextDialer.DialContext)(ctx, network, server)
}
