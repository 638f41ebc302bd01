package postgres

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slotlease/slotlease/store/storekit"
)

// askHosts asks each address of each host what it is, and for its clock. Those that don't answer within the limit are left out.
func (l *Ledger) askHosts(ctx context.Context, limit time.Duration) []storekit.Host {
	type target struct {
		n  int
		ip string
	}
	var targets []target
	var names []string
	for n, ways := range hostsOf(&l.config.Config) {
		to := ways[0]
		ips := []string{to.Host}
		if !isFolder(to.Host) {
			if found, err := net.DefaultResolver.LookupHost(ctx, to.Host); err == nil {
				ips = found
			}
		}
		for _, ip := range ips {
			targets = append(targets, target{n, ip})
			names = append(names, net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
		}
	}
	return storekit.AskHosts(ctx, l.clock, limit, names, func(ctx context.Context, i int) (storekit.Host, error) {
		return l.askHost(ctx, targets[i].n, targets[i].ip)
	})
}

// hostsOf are the ways to each host: the application's pool may try it with TLS, and then without.
func hostsOf(c *pgconn.Config) (hosts [][]*pgconn.FallbackConfig) {
	for _, way := range append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...) {
		if n := len(hosts) - 1; n >= 0 && hosts[n][0].Host == way.Host && hosts[n][0].Port == way.Port {
			hosts[n] = append(hosts[n], way)
			continue
		}
		hosts = append(hosts, []*pgconn.FallbackConfig{way})
	}
	return hosts
}

// askHost asks the nth at one of its addresses.
func (l *Ledger) askHost(ctx context.Context, n int, ip string) (storekit.Host, error) {
	own := l.config.Copy()
	if err := l.beforeConnect(ctx, own); err != nil {
		return storekit.Host{}, err
	}
	config := &own.Config
	take(config, n)
	config.ValidateConnect = nil
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{ip}, nil }
	c, err := pgconn.ConnectConfig(context.WithValue(ctx, asks{}, true), config)
	if err != nil {
		return storekit.Host{}, err
	}
	defer func() {
		_ = c.Conn().Close() // The driver would wait for the server.
		_ = c.Close(context.WithoutCancel(ctx))
	}()
	// The first answer takes longer, because the process has to read the catalog.
	if _, err := l.ask(ctx, c); err != nil {
		return storekit.Host{}, err
	}
	sent := l.clock.Now()
	a, err := l.ask(ctx, c)
	half := l.clock.Since(sent) / 2
	return storekit.Host{
		Process: process(a.server), Writes: !a.standby && !a.readOnly, Ahead: a.at.Sub(sent.Add(half)), Within: half,
	}, err
}
