package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap" //nolint:depguard // the client's own logger, which is turned off
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// aliveTime is how often a connection in use is checked, at the most that etcd allows, and aliveWait how long.
	aliveTime = 10 * time.Second
	aliveWait = 3 * time.Second
	// mostTries is how often a read is sent while members can't be reached, at intervals of tryAgain. An append is sent
	// once, or again if it was refused for its token or by a learner.
	mostTries = 10
	tryAgain  = 25 * time.Millisecond
)

// keyValues begins the methods whose replies have the revision of all keys.
const keyValues = "/etcdserverpb.KV/"

// cluster is an etcd cluster as the ledger sees it. It is a storekit.Objects.
type cluster struct {
	a              address
	user, password string
	current        *storekit.Current // PasswordFunc, or nil
	// passwords are those of the URI's passwordFile, or nil without.
	passwords *storekit.Renewed[string]
	tls       *tls.Config                    // as it was at the start; nil: not encrypted
	files     *storekit.Renewed[*tls.Config] // tls with what the URI's files have; nil with tls
	skew      time.Duration
	oneMember bool
	clock     clock.Clock
	secrets   storekit.Secrets
	runner    *storekit.Runner

	client *clientv3.Client
	web    *http.Client
	// life ends with Close, and with it the connections of web.
	life context.Context
	end  context.CancelFunc
	// renewing holds the right to renew the token.
	renewing chan struct{}
	token    atomic.Pointer[token]
	// id is that of the cluster, once it is known.
	id atomic.Uint64
	// revision is the highest that the cluster has had, and lost says that it had a lower one later.
	revision atomic.Int64
	lost     atomic.Bool
	// teller is the index of the endpoint that gave the time last.
	teller    atomic.Int64
	distances distances
	// newest has the names of the newest records that lists began with, by what they begin with.
	newest sync.Map
	// readOnly is for people who look, whom the time doesn't matter much.
	readOnly bool
}

// folder is where keys begin.
func (c *cluster) folder() string { return c.a.prefix + "/" }

// dial makes the client. It connects by itself.
func (c *cluster) dial() (err error) {
	endpoints := make([]string, len(c.a.hosts))
	for i, h := range c.a.hosts {
		endpoints[i] = c.a.web(h, "")
	}
	options := []grpc.DialOption{grpc.WithChainUnaryInterceptor(c.each), grpc.WithChainStreamInterceptor(c.stream)}
	if c.tls != nil { // It comes after the client's own, and counts.
		options = append(options, grpc.WithTransportCredentials(renewing{credentials.NewTLS(c.tls), c.files}))
	}
	if c.tls != nil && c.tls.ServerName != "" { // Else the client demands that of the endpoint all the same.
		options = append(options, grpc.WithAuthority(c.tls.ServerName))
	}
	c.client, err = clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: c.tls,
		DialKeepAliveTime: aliveTime, DialKeepAliveTimeout: aliveWait,
		MaxUnaryRetries: mostTries, BackoffWaitBetween: tryAgain, Logger: zap.NewNop(),
		DialOptions: options,
	})
	return err
}

// renewing encrypts each new connection as the files say by then.
type renewing struct {
	credentials.TransportCredentials

	files *storekit.Renewed[*tls.Config]
}

// ClientHandshake secures a connection.
func (r renewing) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := credentials.NewTLS(r.files.Now()).ClientHandshake(ctx, authority, conn)
	return secured, info, r.files.Explain(err)
}

// Clone is the same for another connection of gRPC's.
func (r renewing) Clone() credentials.TransportCredentials { return r }

// each sends one request. It doesn't wait while no member can be reached, so that errors say why; goes on to the next
// member if one is a learner; renews the token; and refuses replies of another cluster.
func (c *cluster) each(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, send grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	var last error
	before := c.revision.Load()
	for range mostTries {
		signed, token := ctx, (*token)(nil)
		if method != login {
			var err error
			if signed, token, err = c.signed(ctx, cc); err != nil {
				return err
			}
		}
		var from peer.Peer
		err := send(signed, method, req, reply, cc, append(opts, grpc.WaitForReady(false), grpc.Peer(&from))...)
		switch {
		case err == nil:
			r, ok := reply.(interface{ GetHeader() *pb.ResponseHeader })
			if !ok {
				return nil
			}
			if err := c.recognise(r.GetHeader().GetClusterId()); err != nil || !strings.HasPrefix(method, keyValues) {
				return err
			}
			return c.follow(before, r.GetHeader().GetRevision())
		case token != nil && unaccepted(err):
			if _, err := c.renew(ctx, cc, token); err != nil {
				return err
			}
		case !errors.Is(rpctypes.Error(err), errLearner):
			if status.Code(err) == codes.Unavailable && from.Addr == nil {
				return unsent{err} // It had no connection.
			}
			return err
		}
		// It did nothing. Perhaps no other member is connected yet.
		if last = err; !storekit.Pause(ctx, c.clock, tryAgain) {
			return last
		}
	}
	return last
}

// recognise refuses what comes from another cluster than the first reply, which is as wrong as two databases.
func (c *cluster) recognise(id uint64) error {
	if id == 0 || c.id.CompareAndSwap(0, id) || c.id.Load() == id {
		return nil
	}
	return storekit.Flaw{
		Check: CheckMembers, What: "an endpoint belongs to another etcd cluster than the one that answered first, or the cluster was made anew",
		Remedy: "name the endpoints of one cluster; after a restored backup, stop all workers before they start again",
	}.Refuse()
}

// follow refuses a cluster whose revision has fallen since a request was sent, for good: it has lost what it had
// acknowledged. Requests are linearizable, so that the revision of a reply is none from before its request.
func (c *cluster) follow(before, now int64) error {
	if now < before {
		c.lost.Store(true)
	}
	if c.lost.Load() {
		return storekit.Flaw{
			Check: CheckMembers, What: fmt.Sprintf("the cluster has lost what it had acknowledged: from revision %d it fell back, to %d now", c.revision.Load(), now),
			Remedy: "stop all workers before they start again",
		}.Refuse()
	}
	for old := c.revision.Load(); now > old && !c.revision.CompareAndSwap(old, now); old = c.revision.Load() {
	}
	return nil
}

// dates makes stamps of a member's Date header, which etcd, a Go program, writes for each reply anew.
func (c *cluster) dates(server string) storekit.Dates {
	return storekit.Dates{Skew: c.distances.found().Skew(c.skew), Server: server, Fresh: true}
}

// unsent is the error of a request that was surely not sent.
type unsent struct{ error }

// GRPCStatus is the status of the error, by which etcd's client decides what to do.
func (e unsent) GRPCStatus() *status.Status { return status.Convert(e.error) }

func (e unsent) Unwrap() []error { return []error{e.error, store.ErrNotStored} }
