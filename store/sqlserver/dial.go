//go:build sqlserver

package sqlserver

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// dialer opens the lines of one connection of the driver: one, or a second one where the first server names another,
// and one to SQL Server Browser. Each is closed when ctx ends: the driver heeds no context while it logs in.
type dialer struct {
	ctx   context.Context
	of    *sqldb.Lines
	limit time.Duration // of one line

	mu     sync.Mutex
	newest net.Conn
	keep   []func() bool
}

// HostName says that this dialer looks up the names of hosts itself, which the driver does without a context.
func (*dialer) HostName() string { return "" }

// DialContext opens a line.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.of.Dial(ctx, network, address, d.limit)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest = c
	d.keep = append(d.keep, context.AfterFunc(d.ctx, func() { _ = c.Close() }))
	return c, nil
}

// release lets the lines outlive ctx, and returns the newest one. It reports false if they are closed.
func (d *dialer) release() (net.Conn, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	open := true
	for _, stop := range d.keep {
		open = stop() && open
	}
	return d.newest, open
}
