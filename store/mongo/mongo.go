package mongo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/internal/position"
	"github.com/slotlease/slotlease/store/storekit"
)

// Ledger is a store.Ledger in a MongoDB collection.
type Ledger struct {
	handles atomic.Pointer[handles]
	own     bool
	single  bool // there is one connection at most, by the URI
	label   string
	login   *login
	hangUp  context.CancelFunc // ends the connections of a client of our own
	anew    anew
	skew    time.Duration
	unsafe  bool
	secrets storekit.Secrets
	runner  *storekit.Runner
	fitness fitness
	wrote   position.Mark
	members *members
	awaits  atomic.Int64 // how long a server may keep a watch waiting
}

var (
	_ store.Ledger = (*Ledger)(nil)
	_ store.Pager  = (*Ledger)(nil)
)

// String names the collection and the hosts, never user or password.
func (l *Ledger) String() string {
	return fmt.Sprintf("mongo %s.%s at %s", l.to().db.Name(), l.to().coll.Name(), l.label)
}

// enter fails if the ledger is closed, the context is over, or the collection is
// not fit for a ledger. It is for what isn't performed by run.
func (l *Ledger) enter(ctx context.Context, op, key string) error {
	if err := l.open(ctx, op, key); err != nil {
		return err
	}
	return l.failed(ctx, op, key, l.fit(ctx))
}

// open fails if the ledger is closed or the context is over.
func (l *Ledger) open(ctx context.Context, op, key string) error {
	return l.failed(ctx, op, key, l.runner.Open(callers(ctx)))
}

// run performs an operation, which may be on a collection that isn't fit for a ledger.
func run[T any](ctx context.Context, l *Ledger, op, key string, do func(ctx context.Context) (T, error)) (T, error) {
	return storekit.RunUnchecked(ctx, l.runner, op, key, func(ctx context.Context) (T, error) {
		value, err := insist(ctx, do)
		return value, l.seek(err)
	})
}

// onFit performs an operation on a collection that is fit for a ledger.
func onFit[T any](ctx context.Context, l *Ledger, op, key string, do func(ctx context.Context) (T, error)) (T, error) {
	begun := false
	return run(ctx, l, op, key, func(ctx context.Context) (T, error) {
		if err := l.fit(ctx); err != nil {
			var none T
			if !begun {
				err = storekit.NotStored(err)
			}
			return none, err
		}
		begun = true
		return do(ctx)
	})
}

// Append inserts r unless its key exists, and returns when a majority of the
// replica set has it in its journal. See the package's documentation for what an
// error means; only store.ErrConflict, store.ErrInvalid and store.ErrNotStored say that
// nothing was stored.
func (l *Ledger) Append(ctx context.Context, r store.Record) error {
	if err := r.Check(); err != nil {
		return l.runner.Invalid("append", err)
	}
	key := store.Key(r.WorkerType, r.Seq)
	_, err := onFit(ctx, l, "append", key, func(ctx context.Context) (none struct{}, err error) {
		if err := l.initialised(); err != nil {
			return none, storekit.NotStored(err)
		}
		return none, l.foreign(ctx, r, l.insert(ctx, encode(r)))
	})
	return certain(err)
}

// Get returns the record at a key.
func (l *Ledger) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return store.Record{}, l.runner.Invalid("get", err)
	}
	key := store.Key(workerType, seq)
	return onFit(ctx, l, "get", key, func(ctx context.Context) (store.Record, error) {
		raw, err := first(ctx, l.to().coll, l.target(bson.D{{Key: fieldID, Value: key}}, workerType), projection)
		switch {
		case err != nil:
			return store.Record{}, err
		case raw == nil:
			return store.Record{}, store.ErrNotFound
		}
		return decode(workerType, seq, raw), nil
	})
}

// Tail returns the newest records, newest first. It gives no stamp. It costs one
// find, or two if there are unreachable keys among the newest.
func (l *Ledger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, store.Stamp{}, l.runner.Invalid("tail", err)
	}
	out, err := onFit(ctx, l, "tail", workerType, func(ctx context.Context) ([]store.Record, error) {
		if limit < 1 {
			return nil, nil
		}
		out, unreachable, err := l.walk(ctx, document.Query{WorkerType: workerType, NewestFirst: true, Limit: limit})
		switch {
		case err != nil:
			return nil, err
		case unreachable != "":
			out = slices.Insert(out, 0, document.Unreachable(workerType, unreachable))
		}
		return out, nil
	})
	return out, store.Stamp{}, err
}

// Page returns the oldest records above a Seq, oldest first. It costs one find by the keys, or two if
// there are unreachable keys among them.
func (l *Ledger) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, l.runner.Invalid("page", err)
	}
	return onFit(ctx, l, "page", workerType, func(ctx context.Context) ([]store.Record, error) {
		q, some := document.Page(workerType, after, limit)
		if !some {
			return nil, nil
		}
		records, _, err := l.walk(ctx, q)
		return records, err
	})
}

// Trim deletes the oldest records below a Seq, but never the head: the newest
// record that a majority has.
func (l *Ledger) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return 0, l.runner.Invalid("trim", err)
	}
	return onFit(ctx, l, "trim", workerType, func(ctx context.Context) (int, error) { return l.trim(ctx, workerType, before) })
}

func (l *Ledger) trim(ctx context.Context, workerType string, before int64) (int, error) {
	old, err := document.Trimmable(workerType, before, store.TrimBatch, func(q document.Query) ([]store.Record, error) {
		records, _, err := l.walk(ctx, q)
		return records, err
	})
	if err != nil || len(old) == 0 {
		return 0, err
	}
	ids := make([]string, len(old))
	for i, r := range old {
		ids[i] = store.Key(workerType, r.Seq)
	}
	result, err := l.to().coll.DeleteMany(ctx, l.target(bson.D{{Key: fieldID, Value: bson.D{{Key: "$in", Value: ids}}}}, workerType))
	if result == nil {
		return 0, err
	}
	return int(result.DeletedCount), err
}

// WorkerTypes lists the worker types that have records. It goes by the keys
// alone and needs about one find for each type.
func (l *Ledger) WorkerTypes(ctx context.Context) ([]string, error) {
	return onFit(ctx, l, "list", "", l.list)
}

func (l *Ledger) list(ctx context.Context) ([]string, error) {
	var types []string
	for from := ""; ; {
		ids, err := l.idsFrom(ctx, from)
		if err != nil {
			return nil, err
		}
		if len(ids) == 0 {
			slices.Sort(types)
			return types, nil
		}
		for _, id := range ids {
			if id < from {
				continue
			}
			// Past this id alone, or past all records of its worker type.
			from = id + "\x00"
			workerType, _, _ := strings.Cut(id, ":")
			if _, ok := document.SeqOf(workerType, id); ok && store.CheckWorkerType(workerType) == nil {
				types = append(types, workerType)
				from = workerType + ";"
			}
		}
	}
}

// heartbeatGrace is how long Close waits for the driver, whose Disconnect doesn't interrupt a heartbeat that has just begun: that
// lasts for 10 s, or for as long as a host lets a connection wait. Then the connections are closed.
const heartbeatGrace = 100 * time.Millisecond

// Close ends the ledger; a client that was made from a URI is closed with it,
// and operations that are under way end with an error. If ctx ends first, what is left
// of the client ends in the background.
func (l *Ledger) Close(ctx context.Context) error {
	err := l.runner.Close(ctx, func() error {
		l.members.end()
		if !l.own {
			return nil
		}
		defer l.hangUp()
		done := make(chan error, 1)
		ending, leave := context.WithCancel(ctx)
		defer leave()
		go func() { done <- l.disconnect(ending) }()
		grace, cancel := l.fitness.clock.WithTimeout(ctx, heartbeatGrace)
		defer cancel()
		select {
		case err := <-done:
			return err
		case <-grace.Done():
		}
		leave()    // It may be waiting for a primary, to end its sessions there.
		l.hangUp() // It goes by a context only until it waits for its heartbeats.
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return nil
		}
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
