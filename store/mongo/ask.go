package mongo

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/internal/mongowire"
	"github.com/slotlease/slotlease/internal/skew"
)

// A member is asked for its clock over a connection of our own, without authentication, which
// hello doesn't need. The driver has no way to send a command to a given member of a set; and
// another client for each member would keep two more connections to it, and send a hello
// of its own every 10 s.

// dialFunc connects to a member.
type dialFunc func(ctx context.Context, host string) (net.Conn, error)

// dialer connects to members as the driver does with these options.
func dialer(o *options.ClientOptions) dialFunc {
	return func(ctx context.Context, host string) (net.Conn, error) {
		var d options.ContextDialer = &net.Dialer{}
		if o.Dialer != nil {
			d = o.Dialer
		}
		conn, err := d.DialContext(ctx, "tcp", host)
		if err != nil || o.TLSConfig == nil {
			return conn, err
		}
		config := o.TLSConfig.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(host)
		}
		secured := tls.Client(conn, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return secured, nil
	}
}

// read asks a member for its clock. It is an error if the answer comes from another one: the name
// of a member may mean another server here than it means to the others of the set.
func (m *members) read(ctx context.Context, conn net.Conn, host, set string) (skew.Reading, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	sent := m.local()
	raw, err := mongowire.Ask(conn, bson.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}})
	received := m.local()
	if err != nil {
		return skew.Reading{}, err
	}
	if ok, _ := raw.Lookup("ok").AsFloat64OK(); ok != 1 {
		text, _ := raw.Lookup("errmsg").StringValueOK()
		return skew.Reading{}, fmt.Errorf("hello was refused: %.200s", strings.ToValidUTF8(text, "�"))
	}
	g, err := greet("", raw)
	switch {
	case err != nil:
		return skew.Reading{}, err
	case g.me != host || g.set != set:
		return skew.Reading{}, fmt.Errorf("%s answers as %q of the set %q", host, g.me, g.set)
	}
	return skew.Reading{Time: g.time, Granularity: time.Millisecond, Sent: sent, Received: received}, nil
}
