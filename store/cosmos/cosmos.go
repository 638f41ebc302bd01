package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

// Where ledgers are kept, and what Init gives a container that it makes, unless
// Options or the URI say otherwise.
const (
	DefaultDatabase   = "WorkerProcess"
	DefaultContainer  = "WorkerLeases"
	DefaultThroughput = 400
)

// Options of Open. Either URI or ConnectionString is required. Beside a ConnectionString the URI names no account:
// cosmos:///jobs/leases.
type Options struct {
	// URI names account, database and container:
	//
	//	cosmos://myaccount/jobs/leases
	//
	// An account without a dot and a port is one of the public cloud,
	// https://myaccount.documents.azure.com:443/; with a dot or a port it is the
	// host itself, over https. Parts of the path may be left out. Parameters:
	// throughput, autoscale, serverless=true, serverSkew=500ms and
	// unsafeUnverifiedAccount=true are the fields of the same names, and for emulators
	// on a loopback address there are insecureHTTP=true (no TLS) and
	// insecureSkipVerify=true (certificates aren't checked). A URI that holds a key is
	// refused.
	URI string
	// ConnectionString is that of the portal, with endpoint and key:
	//
	//	AccountEndpoint=https://myaccount.documents.azure.com:443/;AccountKey=…;
	//
	// For an emulator on a loopback address the endpoint may be plain http, and
	// DisableServerCertificateValidation=True may be added.
	ConnectionString string

	// Key is an account key, primary or secondary, for use with URI.
	Key string
	// KeyFunc gives the account key of now, in place of Key, where keys rotate. It is asked when the account is checked: at
	// first, every ten minutes, and after a refusal. It has 10 s, and is called by one goroutine at a time.
	KeyFunc func(ctx context.Context) (string, error)
	// Credential gives tokens of Microsoft Entra ID, for use with URI. Default, if
	// there is no Key either: azidentity's default credential (environment, workload
	// identity, managed identity, Azure CLI …).
	Credential azcore.TokenCredential

	// Database default: that of the URI's path, else DefaultDatabase.
	Database string
	// Container default: that of the URI's path, else DefaultContainer.
	Container string

	// Throughput, Autoscale and Serverless apply to a container that Init creates;
	// at most one may be set. Throughput is manual, in RU/s, a multiple of 100 from
	// 400. Autoscale is the maximum in RU/s, a multiple of 1000 from 1000. Serverless
	// sets none, as serverless accounts require. Default: DefaultThroughput, manual.
	// An existing container isn't changed.
	Throughput int
	Autoscale  int
	Serverless bool

	// ServerSkew is how far the clocks of the account's servers may differ; front-ends
	// and replicas can't be identified. It is an assumption that can't be checked, and
	// part of each stamp. Default: that of the URI, else 250 ms. At least a nanosecond; it
	// can't be negative.
	ServerSkew time.Duration

	// UnsafeUnverifiedAccount accepts an account that doesn't say whether it takes
	// writes in several regions, and a container that may not be read. If the account
	// does take such writes, two workers may hold one lease.
	UnsafeUnverifiedAccount bool

	// Clock times the checks of the account and the waits of throttling, and dates
	// signatures until the account's own time is known. It doesn't measure leases.
	// Default: the real clock.
	Clock clock.Clock
	// Transport sends the requests, for proxies and tests. It must be safe for
	// concurrent use and end with the requests' contexts. Default: an HTTP client
	// that uses the environment's proxies.
	Transport policy.Transporter
}

// Ledger is a store.Ledger in a container of Azure Cosmos DB.
type Ledger struct {
	address   address
	offer     *azcosmos.ThroughputProperties
	skew      time.Duration
	unsafe    bool
	keyed     bool // signs with a key, not with tokens
	clock     clock.Clock
	secrets   storekit.Secrets
	sign      signer
	transport policy.Transporter
	own       *http.Client
	dating    *storekit.Dating
	runner    *storekit.Runner
	fitness   *storekit.Fitness
	link      link
	// container is the id that the service gave it, as of the newest look; another has one of its own that took its place.
	container atomic.Value
}

var (
	_ store.Ledger = (*Ledger)(nil)
	_ store.Pager  = (*Ledger)(nil)
)

// String names the container and the host, never a key.
func (l *Ledger) String() string {
	return fmt.Sprintf("cosmos %s/%s at %s", l.address.database, l.address.container, l.address.host)
}

// Append inserts r unless its key exists. Only store.ErrConflict, store.ErrInvalid and
// store.ErrNotStored mean that nothing was stored; after any other error the outcome is
// unknown, see the package documentation. If it returns nil, the item's own time stamp is
// on the receipt of ctx.
func (l *Ledger) Append(ctx context.Context, r store.Record) error {
	if err := r.Check(); err != nil {
		return l.runner.Invalid("append", err)
	}
	item, err := storekit.Encode(r)
	if err != nil {
		return l.runner.Invalid("append", err)
	}
	stamp, err := run(ctx, l, "append", store.Key(r.WorkerType, r.Seq), func(ctx context.Context, c *conn) (store.Stamp, error) {
		ctx, noted := storekit.Noting(ctx)
		// The reply's content costs no request units, and has the item's time stamp.
		reply, err := c.container.CreateItem(ctx, azcosmos.NewPartitionKeyString(r.WorkerType), item,
			&azcosmos.ItemOptions{EnableContentResponseOnWrite: true})
		if err != nil {
			return store.Stamp{}, err
		}
		if reply.RawResponse.StatusCode != http.StatusCreated {
			// Some proxy's words.
			return store.Stamp{}, fmt.Errorf("the reply to a create is %d, not 201", reply.RawResponse.StatusCode)
		}
		return l.written(reply.Value, noted()), nil
	})
	if err == nil && !stamp.IsZero() {
		store.Tell(ctx, stamp)
	}
	return err
}

// Get returns the record at a key, by a point read.
func (l *Ledger) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return store.Record{}, l.runner.Invalid("get", err)
	}
	key := store.Key(workerType, seq)
	return run(ctx, l, "get", key, func(ctx context.Context, c *conn) (store.Record, error) {
		reply, err := c.container.ReadItem(ctx, azcosmos.NewPartitionKeyString(workerType), key,
			&azcosmos.ItemOptions{ConsistencyLevel: c.consistency(), DedicatedGatewayRequestOptions: uncached()})
		switch {
		case isStatus(err, http.StatusNotFound) && !ownerMissing(err):
			return store.Record{}, fmt.Errorf("%w: %w", store.ErrNotFound, err)
		case err != nil:
			return store.Record{}, err
		}
		return storekit.Decode(workerType, seq, reply.Value), nil
	})
}

// Tail returns the newest records, newest first, and the account's time, which is
// selected along with them. It costs one query, or two if there are unreachable records
// among the newest.
func (l *Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, store.Stamp{}, l.runner.Invalid("tail", err)
	}
	got, err := run(ctx, l, "tail", workerType, func(ctx context.Context, c *conn) (found walked, err error) {
		if limit < 1 {
			return found, nil
		}
		ctx, noted := storekit.Noting(ctx)
		found, err = c.walk(ctx, document.Query{WorkerType: workerType, NewestFirst: true, Limit: limit})
		if err != nil {
			return walked{}, err
		}
		if found.unreachable != "" {
			found.records = slices.Insert(found.records, 0, document.Unreachable(workerType, found.unreachable))
		}
		found.stamp = l.stamp(found.time, noted())
		return found, nil
	})
	return got.records, got.stamp, err
}

// Page returns the oldest records above a Seq, oldest first. It costs one query, or two if there are
// unreachable records among them.
func (l *Ledger) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, l.runner.Invalid("page", err)
	}
	return run(ctx, l, "page", workerType, func(ctx context.Context, c *conn) ([]store.Record, error) {
		q, some := document.Page(workerType, after, limit)
		if !some {
			return nil, nil
		}
		found, err := c.walk(ctx, q)
		return found.records, err
	})
}

// Trim deletes the oldest records below a Seq, but never the head. Each deletion costs
// one request.
func (l *Ledger) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return 0, l.runner.Invalid("trim", err)
	}
	var deleted atomic.Int64
	_, err := run(ctx, l, "trim", workerType, func(ctx context.Context, c *conn) (struct{}, error) {
		return struct{}{}, c.trim(ctx, workerType, before, &deleted)
	})
	return int(deleted.Load()), err
}

// WorkerTypes lists the worker types that have records. It goes by the keys
// alone, through all partitions, and costs about one query for each that it finds.
func (l *Ledger) WorkerTypes(ctx context.Context) ([]string, error) {
	return run(ctx, l, "list", "", func(ctx context.Context, c *conn) ([]string, error) {
		return c.workerTypes(ctx)
	})
}

// Close ends the ledger; operations that are under way end with an error. It waits for them
// until ctx ends.
func (l *Ledger) Close(ctx context.Context) error {
	return l.runner.Close(ctx, func() error {
		l.link.close()
		if l.own != nil {
			l.own.CloseIdleConnections()
			// HTTP/2 lets go of requests that are cancelled a little later.
			l.clock.AfterFunc(time.Second, l.own.CloseIdleConnections)
		}
		return nil
	})
}
