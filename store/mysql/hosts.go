package mysql

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// askHosts asks each host what it is, and for its clock. Those that don't answer within the limit are left out.
func (l *Ledger) askHosts(ctx context.Context, limit time.Duration) []storekit.Host {
	return storekit.AskHosts(ctx, l.clock, limit, l.address.Addresses(), func(ctx context.Context, i int) (h storekit.Host, err error) {
		c, err := l.open(ctx, i, func(ctx context.Context, c *conn) (err error) {
			h, err = l.askHost(ctx, c)
			return err
		})
		if err == nil {
			_ = c.Close()
		}
		return h, err
	})
}

// galeraProcess begins the name by which writers knows the nodes of one Galera cluster: they all take writes, and share them.
const galeraProcess = "cluster "

// askHost asks one over a connection that has no settings yet.
func (l *Ledger) askHost(ctx context.Context, c *conn) (h storekit.Host, err error) {
	in, err := c.introduce(ctx)
	if err != nil {
		return h, err
	}
	h.Process, h.Writes = clockName(in.server, in.began), unwritable(in.variables) == ""
	if in.variables["wsrep_on"] == "ON" {
		rows, err := c.all(ctx, `SHOW GLOBAL STATUS LIKE 'wsrep_cluster_state_uuid'`)
		if err != nil {
			return h, err
		}
		if len(rows) == 1 {
			l.clustered.Store(h.Process, galeraProcess+rows[0][1])
		}
	}
	sent := l.clock.Now()
	rows, err := c.all(ctx, `SELECT `+clockNow)
	if err != nil {
		return h, err
	}
	half := l.clock.Since(sent) / 2
	micros, err := strconv.ParseInt(rows[0][0], 10, 64)
	h.Ahead, h.Within = time.UnixMicro(micros).Sub(sent.Add(half)), half
	return h, err
}

// writers gives the nodes of a cluster, which share what they write, one process.
func (l *Ledger) writers(hosts []storekit.Host) []storekit.Host {
	hosts = slices.Clone(hosts)
	for i, h := range hosts {
		if cluster, ok := l.clustered.Load(h.Process); ok {
			hosts[i].Process = cluster.(string)
		}
	}
	return hosts
}

// history names the line of changes that a server goes on with: the server itself, unless what it has acknowledged survives each
// failover, and its process if a restart may lose what was acknowledged.
func (l *Ledger) history(server string) string {
	f := l.core.Known()
	switch {
	case f == nil || f.galera() || f.group() || f.survivesFailover(len(l.address.Hosts)):
		return ""
	case f.flushed():
		return serverOf(server)
	}
	return server
}

// unasked says which servers' clocks are not known; empty if all are.
func (l *Ledger) unasked(f *facts) string {
	switch {
	case len(l.address.Hosts) < 2 && !f.several():
		return ""
	case l.core.Lender != nil:
		return "the servers that the application's pool may lead to aren't known"
	case f.proxied:
		return "a proxy hides the servers"
	case len(f.Hosts) < f.servers():
		return "servers that the URI doesn't name weren't asked: name all servers"
	}
	return ""
}
