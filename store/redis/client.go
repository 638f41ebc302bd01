package redis

import (
	"context"
	"errors"
	"fmt"
	"net"

	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store/storekit"
)

// ofSentinels is the address in the options of a client that asks sentinels for its primary. Its Dialer asks them.
const ofSentinels = "FailoverClient"

// take finds out how the application's client connects and logs in, and where. The client itself is used for no more
// than finding the node of a cluster.
func (l *Ledger) take(o Options) (a address, err error) {
	if o.Username != "" || o.Password != "" || o.PasswordFunc != nil || o.TLS != nil || o.SentinelUsername != "" || o.SentinelPassword != "" {
		return a, errors.New("options: Username, Password, PasswordFunc, TLS, SentinelUsername and SentinelPassword go with URI: a Client has its own")
	}
	switch c := o.Client.(type) {
	case *goredis.Client:
		s := c.Options()
		l.settings = func(context.Context) (*goredis.Options, error) { return s, nil }
		l.failover = s.Addr == ofSentinels
		l.tls = s.TLSConfig
		a = address{hosts: []string{s.Addr}, user: s.Username, password: s.Password, db: s.DB}
	case *goredis.ClusterClient:
		s := c.Options()
		if s.ClusterSlots != nil || len(s.Addrs) == 0 {
			return a, errors.New("options: the Client is of a cluster that is none, with ClusterSlots of its own, as NewFailoverClusterClient makes it: use NewFailoverClient")
		}
		l.settings = func(ctx context.Context) (*goredis.Options, error) {
			node, err := c.MasterForKey(ctx, l.names.types())
			if err != nil {
				return nil, storekit.NotStored(fmt.Errorf("ask the cluster's client for the node that has the keys: %w", err))
			}
			return node.Options(), nil
		}
		l.tls = s.TLSConfig
		a = address{hosts: s.Addrs[:1], user: s.Username, password: s.Password}
	default:
		return a, fmt.Errorf("options: the Client is a %T, of which it isn't known where a key is: use a *redis.Client or *redis.ClusterClient", o.Client)
	}
	if a.scheme = scheme; l.tls != nil {
		a.scheme = schemeTLS
	}
	return a, nil
}

// byClient reports whether the client's Dialer leads to an address. That of one with sentinels leads to the primary
// alone.
func (l *Ledger) byClient(addr string) bool { return !l.failover || addr == l.primary.current() }

// connectAsClient makes connections as the application's client does.
func (l *Ledger) connectAsClient(o *goredis.Options) dialer {
	return func(ctx context.Context, addr, _ string) (net.Conn, error) {
		network := "tcp"
		if addr == o.Addr {
			network = o.Network
		}
		ctx, cancel := l.clock.WithTimeout(ctx, dialTime)
		defer cancel()
		return o.Dialer(ctx, network, addr)
	}
}

// askClient is the address of the primary to which the Dialer of a client with sentinels leads now, which asks them.
func (l *Ledger) askClient(ctx context.Context) (string, error) {
	o, err := l.settings(ctx)
	if err != nil {
		return "", err
	}
	conn, err := l.connectAsClient(o)(ctx, ofSentinels, "")
	if err != nil {
		return "", fmt.Errorf("connect as the client with sentinels does: %w", err)
	}
	defer func() { _ = conn.Close() }()
	return conn.RemoteAddr().String(), nil
}
