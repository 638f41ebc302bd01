package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
	"github.com/slotlease/slotlease/store/internal/gather"
	"github.com/slotlease/slotlease/store/storekit"
)

// DefaultBusyTimeout is how long an operation waits for other processes.
const DefaultBusyTimeout = 5 * time.Second

// Options of Open. All but Path may be left out.
type Options struct {
	// Path is the file: a plain path, not a URI. Required. ":memory:" is refused,
	// see store/memory.
	Path string
	// BusyTimeout is how long an operation waits for the file's write lock while
	// another process holds it. After that it fails, and has stored nothing (store.ErrNotStored). The end of the
	// operation's context ends the wait at once. Default DefaultBusyTimeout.
	BusyTimeout time.Duration
	// ReadOnly opens the ledger for reading: the file is never created or changed,
	// and Init, Append and Trim fail with store.ErrDenied. It needs no more than
	// the right to read the file, its directory and, while the ledger is in use,
	// the two files beside it; see "Reading without the right to write" in the
	// package documentation.
	ReadOnly bool
	// UnsafeFileSystem accepts a network file system, FUSE and the like (Linux only;
	// other systems accept them all). There, nothing keeps two machines, or two mounts,
	// from storing the same key. It is for those who know that one machine uses the
	// file, by one mount which has shared memory and locks.
	UnsafeFileSystem bool
	// Clock gives the wall offset once per boot of the machine (on systems other than
	// Linux, each stamp), and times the waits for locks. Default: the real clock.
	Clock clock.Clock
	// BootID is for tests: it names a simulated boot of the machine. Its boot clock, on
	// every platform, is the method Boottime() time.Duration of Clock, or Clock.Now if
	// there is none. The boot clocks of handles with the same BootID must agree. Empty
	// for the real machine.
	BootID string
}

// Ledger is a store.Ledger in a SQLite file.
type Ledger struct {
	o    Options
	boot machine
	line atomic.Pointer[line] // the time line of this handle, once it has one, until Close

	opening chan struct{} // has one element while a call checks or opens the file
	appends queue
	tails   *gather.Calls[question, answer]
	// tailWaits is how long tails have waited for locks, in nanoseconds.
	tailWaits atomic.Int64
	acts      chan func()   // to the goroutine that waits for another act
	idle      atomic.Bool   // There is one.
	ended     chan struct{} // closed by Close

	life context.Context // ends with Close, which ends the watches
	end  context.CancelFunc

	mu     sync.Mutex // for the fields below; never held while using the disk
	file   *file      // nil until first used
	used   files      // the last that were open
	closed bool
	letGo  func() // of the time line, or nil
	// unshared is ErrUnshared and what was found, once it was, or nil.
	unshared error
	// As of the newest stamp: how far the wall clock is ahead of store time, or 0 if that is
	// little; and what workers would have to wait for, or nil.
	apart time.Duration
	doubt *storekit.Flaw
	calls sync.WaitGroup // calls under way; grows only under mu while not closed
}

var (
	_ store.Ledger   = (*Ledger)(nil)
	_ store.Follower = (*Ledger)(nil)
	_ store.Pager    = (*Ledger)(nil)
	_ store.Watcher  = (*Ledger)(nil)
)

// Open checks the options and, if it exists, the file. The first operation creates a
// missing file; with ReadOnly, Open fails with store.ErrMissing instead. It fails with
// store.ErrRefused if the file isn't a ledger, and with store.ErrDenied if rights are
// missing.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	l, err := prepare(o)
	if err != nil {
		return nil, err
	}
	_, err = do(ctx, l, "open", l.o.Path, func(ctx context.Context) (struct{}, error) {
		found, err := l.inspect(ctx)
		if err == nil && found < isLedger && l.o.ReadOnly {
			err = errMissing
		}
		return struct{}{}, err
	})
	if err != nil {
		close(l.ended)
		return nil, err
	}
	return l, nil
}

// prepare checks the options, and makes a ledger of them. It looks at no file.
func prepare(o Options) (*Ledger, error) {
	var errs []error
	switch {
	case o.Path == "":
		errs = append(errs, errors.New("path is empty: name the file"))
	case strings.Contains(o.Path, ":memory:"):
		errs = append(errs, fmt.Errorf("path %q: a ledger in memory can't be shared by processes: use store/memory", o.Path))
	case strings.HasPrefix(o.Path, "file:"):
		errs = append(errs, fmt.Errorf("path %q: give a plain path, not a URI", o.Path))
	case strings.ContainsRune(o.Path, 0):
		errs = append(errs, fmt.Errorf("path %q: must not contain NUL", o.Path))
	}
	if o.BusyTimeout < 0 {
		errs = append(errs, fmt.Errorf("busy timeout %v: must not be negative", o.BusyTimeout))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("sqlite: open: %w", errors.Join(errs...))
	}
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", o.Path, err)
	}
	o.Path = path
	if o.BusyTimeout == 0 {
		o.BusyTimeout = DefaultBusyTimeout
	}
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	boot, err := machineOf(o)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", o.Path, err)
	}
	l := &Ledger{o: o, boot: boot, opening: make(chan struct{}, 1), appends: queue{left: make(chan struct{}, 1)}, acts: make(chan func()), ended: make(chan struct{})}
	l.tails = gather.New(1, maxTails, l.readTails)
	l.life, l.end = context.WithCancel(context.Background())
	return l, nil
}

// Append inserts r unless its key exists, and syncs it to the disk. It fails with
// store.ErrRefused, and stores nothing, if the ledger goes by another time by now than the one
// that this handle has read.
func (l *Ledger) Append(ctx context.Context, r store.Record) error {
	return l.append(ctx, r, nil)
}

// AppendAfter is Append above a record that the caller knows. Both are looked at in the transaction that stores r.
func (l *Ledger) AppendAfter(ctx context.Context, r, prev store.Record) error {
	if err := store.CheckAfter(r, prev); err != nil {
		return fmt.Errorf("sqlite: append: %w", err)
	}
	return l.append(ctx, r, &prev)
}

func (l *Ledger) append(ctx context.Context, r store.Record, prev *store.Record) error {
	if err := r.Check(); err != nil {
		return fmt.Errorf("sqlite: append: %w", err)
	}
	values, err := encode(r)
	if err != nil {
		return fmt.Errorf("sqlite: append: %w", err)
	}
	err = l.enqueue(ctx, r.Kind, append(values, below(prev)...))
	if prev != nil && isBelow(err) {
		err = store.WentBack(*prev)
	}
	if err != nil {
		return fmt.Errorf("sqlite: append %s: %w", store.Key(r.WorkerType, r.Seq), err)
	}
	return nil
}

// Get returns the record at a key.
func (l *Ledger) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	return reads(ctx, l, "get", store.Key(workerType, seq), func(ctx context.Context, f *file) (store.Record, error) {
		records, err := f.records(ctx, selectOne, workerType, seq)
		if err == nil && len(records) == 0 {
			err = store.ErrNotFound
		}
		if err != nil {
			return store.Record{}, err
		}
		return records[0], nil
	})
}

// Page returns the oldest records above a Seq, oldest first. Appends by this handle wait for it, some
// 10 ms for the largest page.
func (l *Ledger) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	return reads(ctx, l, "page", workerType, func(ctx context.Context, f *file) ([]store.Record, error) {
		return f.records(ctx, selectPage, workerType, max(after, 0), int64(store.MaxSeq), max(0, min(limit, store.MaxPage)))
	})
}

// Trim deletes the oldest records below a Seq, but never the head.
func (l *Ledger) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	return writes(ctx, l, "trim", workerType, func(ctx context.Context, f *file) (int, error) {
		for {
			schema := f.schema.Load()
			res, err := f.db.ExecContext(ctx, deleteOldest, workerType, int64(store.MaxSeq), before, store.TrimBatch, schema)
			if err != nil {
				return 0, f.blamed(ctx, err)
			}
			n, err := res.RowsAffected()
			if n > 0 || err != nil {
				return int(n), err
			}
			// There is nothing to delete, or the tables were changed.
			if changed, err := f.changed(ctx, schema); !changed || err != nil {
				return 0, err
			}
		}
	})
}

// WorkerTypes lists the worker types that have records, in byte order.
func (l *Ledger) WorkerTypes(ctx context.Context) ([]string, error) {
	return reads(ctx, l, "list", l.o.Path, func(ctx context.Context, f *file) ([]string, error) {
		return rows(ctx, f.db, func(r *sql.Rows) (name string, err error) { err = r.Scan(&name); return name, err }, selectTypes)
	})
}

// Now reads the machine's boot clock and adds the wall offset in the file.
func (l *Ledger) Now(ctx context.Context) (store.Stamp, error) {
	return reads(ctx, l, "now", l.o.Path, l.stamp)
}

// Close waits for the operations in progress, at most until its context ends, and
// closes the file. Those that still wait for their turn to use it fail with
// store.ErrClosed: they have done nothing.
//
// If its context ends first, the file is closed in the background, when the last
// operation has ended. If the disk hangs for good, that never happens: the goroutines
// of the hanging operations, one more that waits for them, and the open file remain
// until the process ends. A later Close doesn't wait for them again.
func (l *Ledger) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	close(l.ended)
	l.end()

	closed := make(chan error, 1)
	go func() {
		l.calls.Wait()
		l.mu.Lock()
		f := l.file
		l.file = nil
		letGo := l.letGo
		l.mu.Unlock()
		err := f.close()
		if letGo != nil {
			letGo()
		}
		closed <- err
	}()
	select {
	case err := <-closed:
		if err != nil {
			return fmt.Errorf("sqlite: close %s: %w", l.o.Path, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sqlite: close %s: %w", l.o.Path, fault.Ended(ctx))
	}
}
