package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"
	goredis "github.com/redis/go-redis/v9"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Ledger is a store.Ledger in a database of Redis or Valkey.
type Ledger struct {
	address  address
	tls      *tls.Config // nil for none
	clock    clock.Clock
	readOnly bool
	appName  string
	sentinel *goredis.Options // the login of sentinels
	// settings are how the next connection is made and logs in: those of the URI, or of the application's own client; failover:
	// that asks sentinels.
	settings func(ctx context.Context) (*goredis.Options, error)
	failover bool
	turn     atomic.Uint32 // of the sentinels
	primary  primary
	patience time.Duration // the constant, but in tests
	names    names
	runner   *storekit.Runner
	fitness  *storekit.Fitness
	secrets  storekit.Secrets
	links    *pool
	// elsewhere is the address of the node of a cluster that has our keys, once a node has named it.
	elsewhere atomic.Pointer[string]
	// line is that of changes, as of the newest word of a server, and whole the server whose append-only file was seen complete last.
	line  line
	whole atomic.Pointer[string]
	// listed is how many replicas sentinels know, also of those that are down, until SENTINEL RESET.
	listed atomic.Int64
	// most is how many replicas were seen at a time: any of them may take over one day.
	most atomic.Int64
	// surveyed is what the newest check has found of the other servers, and lookup finds the addresses of a host.
	surveyed atomic.Pointer[survey]
	lookup   func(ctx context.Context, host string) ([]string, error)
	// splitSince is since when surveys have found several primaries.
	splitSince atomic.Pointer[time.Time]
	// primarySeen: a server was found fit that is the primary, so that one which isn't has just been replaced.
	primarySeen atomic.Bool
	// leftOut are the rosters that the newest list of all presences lacks.
	leftOut atomic.Pointer[[]unreadable]
	// known is what the newest check has found.
	known atomic.Pointer[server]
}

var (
	_ store.Ledger   = (*Ledger)(nil)
	_ store.Pager    = (*Ledger)(nil)
	_ store.Follower = (*Ledger)(nil)
)

// names are those of the keys, which all have one hash tag, and so are in one slot of a cluster.
type names struct{ tag string }

func newNames(prefix string) names { return names{"{" + prefix + "}:"} }

func (n names) ledger(workerType string) string { return n.tag + "ledger:" + workerType }
func (n names) roster(workerType string) string { return n.tag + "roster:" + workerType }
func (n names) types() string                   { return n.tag + "types" }
func (n names) rosters() string                 { return n.tag + "rosters" }
func (n names) sync() string                    { return n.tag + "sync" }
func (n names) channel() string                 { return n.tag + "watch" }

// mostMoves is how often an operation follows a cluster to another node.
const mostMoves = 4

// on performs an operation on a link, whose server is fit. It follows a cluster to the node that has the keys.
func (l *Ledger) on(ctx context.Context, do func(k *link) (usable bool, err error)) error {
	l.confirm(ctx)
	for n := 1; ; n++ {
		node := ""
		err := l.links.with(ctx, func(k *link) (bool, error) {
			node = k.addr
			if usable, err := l.checked(ctx, k); err != nil {
				return usable, err
			}
			return do(k)
		})
		addr, ok := moved(err, node)
		if !ok || n == mostMoves {
			if isCode(err, "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN") {
				l.leave()
			}
			return err
		}
		l.elsewhere.Store(&addr)
		l.links.renew()
	}
}

// leave lets the next operation look for the server that has the ledger: that which had it has it no longer.
func (l *Ledger) leave() {
	l.elsewhere.Store(nil)
	l.links.renew()
}

// Init checks that the server can keep a ledger. There is nothing to create.
func (l *Ledger) Init(ctx context.Context) error {
	_, err := storekit.RunUnchecked(ctx, l.runner, "init", "", func(ctx context.Context) (none struct{}, err error) {
		return none, l.fitness.Check(ctx)
	})
	return err
}

// Append stores a record unless its key exists, by one script. If it returns nil, the server's time is on the receipt
// of ctx.
func (l *Ledger) Append(ctx context.Context, r store.Record) error { return l.append(ctx, r, nil) }

// AppendAfter is Append if the record below is still prev, by the same script. See store.Follower.
func (l *Ledger) AppendAfter(ctx context.Context, r, prev store.Record) error {
	if err := store.CheckAfter(r, prev); err != nil {
		return l.runner.Invalid("append", err)
	}
	return l.append(ctx, r, &prev)
}

// append stores a record; right above prev, unless that is nil.
func (l *Ledger) append(ctx context.Context, r store.Record, prev *store.Record) error {
	err := r.Check()
	var text []byte
	if err == nil {
		text, err = storekit.Encode(r)
	}
	if err != nil {
		return l.runner.Invalid("append", err)
	}
	channel := ""
	if store.Frees(r.Kind) {
		channel = l.names.channel()
	}
	script := call(appendScript, []string{l.names.ledger(r.WorkerType), l.names.types()}, r.Seq, string(text), r.WorkerType, channel)
	if prev != nil {
		script = append(script, prev.Seq, prev.Claim, string(prev.Kind), prev.InstanceID, storekit.MaxDocument)
	}
	stamp, err := storekit.Run(ctx, l.runner, "append", store.Key(r.WorkerType, r.Seq), func(ctx context.Context) (stamp store.Stamp, err error) {
		if l.readOnly {
			return stamp, errReadOnly
		}
		replies, stamp, err := l.exchange(ctx, append([]command{script}, l.wait()...)...)
		if err == nil {
			err = l.appended(r.WorkerType, prev, replies)
		}
		return stamp, err
	})
	if err == nil {
		store.Tell(ctx, stamp)
	}
	return err
}

// appended reads the reply to an append, and that of the WAIT after it.
func (l *Ledger) appended(workerType string, prev *store.Record, replies []*goredis.Cmd) error {
	switch outcome, err := replies[0].Text(); outcome {
	case "stored":
		return l.waited(replies)
	case "exists":
		return store.ErrConflict
	case "back":
		return store.WentBack(*prev)
	case "expires":
		return storekit.NotStored(expires(l.names.ledger(workerType)).Refuse())
	case "elsewhere":
		return storekit.NotStored(fmt.Errorf("another program has stored this very document in %s under another score", l.names.ledger(workerType)))
	default:
		return cmp.Or(err, fmt.Errorf("odd reply to an append: %.100v", replies[0].Val()))
	}
}

// Get returns the record at a key.
func (l *Ledger) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	err := store.CheckWorkerType(workerType)
	if err == nil && (seq < 1 || seq > store.MaxSeq) {
		err = fmt.Errorf("seq %d: %w", seq, store.ErrNotFound)
	}
	if err != nil {
		return store.Record{}, l.runner.Invalid("get", err)
	}
	return storekit.Run(ctx, l.runner, "get", store.Key(workerType, seq), func(ctx context.Context) (store.Record, error) {
		at := strconv.FormatInt(seq, 10)
		found, err := l.rows(ctx, workerType, span{from: at, to: at, limit: 1})
		if err == nil && len(found.records) == 0 {
			err = store.ErrNotFound
		}
		if err != nil {
			return store.Record{}, err
		}
		return found.records[0], nil
	})
}

// Tail returns the newest records, newest first, and the server's time.
func (l *Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, store.Stamp{}, l.runner.Invalid("tail", err)
	}
	found, err := storekit.Run(ctx, l.runner, "tail", workerType, func(ctx context.Context) (found, error) {
		return l.rows(ctx, workerType, span{newestFirst: true, from: "+inf", to: "1", limit: limit})
	})
	return found.records, found.stamp, err
}

// Page returns the oldest records above a Seq, oldest first.
func (l *Ledger) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, l.runner.Invalid("page", err)
	}
	found, err := storekit.Run(ctx, l.runner, "page", workerType, func(ctx context.Context) (found, error) {
		from := strconv.FormatInt(max(after, 0)+1, 10)
		if after >= store.MaxSeq {
			return found{}, nil
		}
		return l.rows(ctx, workerType, span{from: from, to: maxSeq, limit: min(limit, store.MaxPage), short: true})
	})
	return found.records, err
}

// Trim deletes the oldest records below a Seq, but never the head, by one script.
func (l *Ledger) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return 0, l.runner.Invalid("trim", err)
	}
	script := call(trimScript, []string{l.names.ledger(workerType)}, min(max(before, 0), store.MaxSeq+1), maxSeq, store.TrimBatch)
	return storekit.Run(ctx, l.runner, "trim", workerType, func(ctx context.Context) (n int, err error) {
		if l.readOnly {
			return 0, errReadOnly
		}
		replies, _, err := l.exchange(ctx, script)
		if err != nil {
			return 0, err
		}
		return replies[0].Int()
	})
}

// WorkerTypes lists the worker types that have records, in byte order.
func (l *Ledger) WorkerTypes(ctx context.Context) ([]string, error) {
	return storekit.Run(ctx, l.runner, "list", "", func(ctx context.Context) (types []string, err error) {
		names, err := l.members(ctx, l.names.types())
		if err != nil {
			return nil, err
		}
		for some := range slices.Chunk(names, atATime) {
			var asked []command
			for _, name := range some {
				asked = append(asked, command{"ZCARD", l.names.ledger(name)})
			}
			replies, _, err := l.exchange(ctx, asked...)
			if err != nil {
				return nil, err
			}
			for i, r := range replies {
				n, err := r.Int64()
				overwritten := isCode(err, "WRONGTYPE") // It stays in the list, or who reads all ledgers would not learn of it.
				if err != nil && !overwritten {
					return nil, err
				}
				if n > 0 || overwritten {
					types = append(types, some[i])
				}
			}
		}
		slices.Sort(types)
		return types, nil
	})
}

// Now reads the server's clock.
func (l *Ledger) Now(ctx context.Context) (store.Stamp, error) {
	return storekit.Run(ctx, l.runner, "now", "", func(ctx context.Context) (stamp store.Stamp, err error) {
		var where []command
		if s := l.known.Load(); s != nil && s.cluster {
			where = []command{{"EXISTS", l.names.types()}} // A cluster sends to the node that has the keys.
		}
		_, stamp, err = l.exchange(ctx, where...)
		return stamp, err
	})
}

// Close ends the operations in progress, and closes the connections.
func (l *Ledger) Close(ctx context.Context) error { return l.runner.Close(ctx, l.links.close) }

// String is the URI as it may be shown.
func (l *Ledger) String() string { return l.address.String() }
