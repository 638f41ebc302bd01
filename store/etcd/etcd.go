package etcd

import (
	"context"
	"crypto/tls"
	"strings"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// DefaultPrefix is where keys begin, unless Options or the URI say otherwise.
	DefaultPrefix = "slotlease"
	// DefaultPort is that of endpoints without one.
	DefaultPort = 2379
	// DefaultServerSkew is how far the members' clocks are assumed to be apart.
	DefaultServerSkew = 250 * time.Millisecond
)

// Options of Open. URI is required.
type Options struct {
	// URI names the endpoints and the prefix of the keys:
	//
	//	etcd://10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379/team/jobs?user=worker
	//
	// etcds:// is encrypted. The port is 2379 if it is missing, and the prefix DefaultPrefix. All endpoints must
	// be members of one cluster. Parameters:
	//
	//	user=NAME            Options.User
	//	passwordFile=PATH    the file with its password, whose last line break doesn't count; read again for each token
	//	ca=PATH              certificates of the authorities that are trusted, in PEM; default: the system's
	//	cert=PATH, key=PATH  the client's certificate and key, in PEM; as ca, they are read again for each connection
	//	serverName=NAME      the name in the servers' certificates; default: the endpoint's host
	//	serverSkew=500ms     Options.ServerSkew
	//	oneMember=true       Options.OneMember
	//
	// A URI that holds a password is refused.
	URI string

	// User and Password are those of etcd's authentication. Default: none, or the user of the URI with the password
	// of its file or, without one, of the environment variable ETCD_PASSWORD, if the ledger is opened by store.Open.
	User, Password string
	// PasswordFunc gives the User's password of now, in place of Password, where it changes. It is asked for each token, has
	// 10 s, and is called by one goroutine at a time.
	PasswordFunc func(ctx context.Context) (string, error)
	// TLS is used for etcds:// in place of the URI's ca, cert, key and serverName. Default: those.
	TLS *tls.Config

	// ServerSkew is how far the clocks of the cluster's members may differ at most. It is an assumption, and part of
	// each stamp. Default: that of the URI, else DefaultServerSkew. It can't be negative.
	ServerSkew time.Duration
	// OneMember says that the cluster has one member and won't get another while workers run, so that there is one
	// clock, and no skew. A cluster of several is refused then. Default: that of the URI, else false.
	OneMember bool

	// Clock measures what the store waits for. It doesn't measure leases. Default: the real clock.
	Clock clock.Clock
}

// Ledger keeps ledgers in an etcd cluster. It is a store.Ledger, store.Roster, store.Pager,
// store.Watcher and store.Described, and safe for concurrent use.
type Ledger struct {
	*storekit.ObjectLedger

	c *cluster
}

var (
	_ store.Ledger = (*Ledger)(nil)
	_ store.Roster = (*Ledger)(nil)
	_ store.Pager  = (*Ledger)(nil)
)

// String names the cluster and the prefix, without secrets.
func (l *Ledger) String() string { return l.c.String() }

// String is a URI without parameters.
func (c *cluster) String() string {
	return c.a.scheme() + strings.Join(c.a.hosts, ",") + "/" + c.a.prefix
}

// CheckRights tries an append and a deletion in transactions that can't succeed.
func (l *Ledger) CheckRights(ctx context.Context) error {
	_, err := storekit.Run(ctx, l.c.runner, "rights", "", func(ctx context.Context) (none struct{}, err error) {
		return none, l.c.table().Ask(ctx, store.CheckAppend)
	})
	return err
}

// Examine asks each endpoint for its state, and tries the rights by transactions that can't succeed. It stores nothing.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	return l.c.table().Examine(ctx)
}

// table is one for an examination.
func (c *cluster) table() *storekit.Checks {
	return &storekit.Checks{Rows: (&exam{cluster: c}).rows(), Runner: c.runner, Clock: c.clock}
}
