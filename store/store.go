package store

import (
	"context"
	"time"
)

// Ledger is a document store that keeps the ledgers of any number of worker
// types. It is safe for concurrent use.
type Ledger interface {
	// Init creates what the store needs (collections, tables, files). It changes
	// nothing that exists, so it is safe to repeat. Implementations must also work
	// if it was never called, or fail with a clear error.
	Init(ctx context.Context) error

	// Append inserts r unless its key (WorkerType, Seq) exists. It returns
	// ErrConflict if the key exists, even if an earlier attempt stored this very
	// record, and ErrInvalid (nothing was sent) if r.Check fails. An error that matches
	// ErrNotStored, such as a refusal by the server, says that nothing was stored either.
	// After any other error the outcome is unknown: the record may be stored, now or later.
	Append(ctx context.Context, r Record) error

	// Get returns the record at a key, or ErrNotFound. A stored document whose
	// envelope can't be decoded is returned with Defect set and a nil error. The
	// other fields are for information: if one is missing, of a wrong type, or
	// emptied by Record.Cleaned, it comes back empty and is never a Defect. A newer
	// version may write more of them, and its leases must be obeyed.
	Get(ctx context.Context, workerType string, seq int64) (Record, error)

	// Tail returns the newest records, at most limit of them, newest first. An
	// empty ledger gives none, and no error. Documents are decoded as by Get.
	//
	// They are what the ledger had at one moment during the call: with a record that was
	// appended meanwhile come those before it. Records that are trimmed during the call
	// may be missing, but never the newest. A store may rely on how workers append, right
	// above the newest record that they have seen, and trim, far below it: what comes late,
	// in a gap or at a key that was trimmed, may show without a newer record, and a trim of
	// what is the newest while the call goes on may hide a newer one.
	//
	// Unreachable records, whose Seq is unreadable or not in 1 … MaxSeq, are passed
	// over. If there are any, one of them comes first, in addition to limit, with
	// Defect set and Seq 0. Those below 1 need not be reported.
	//
	// The Stamp is the zero Stamp if the store gives no time for free.
	Tail(ctx context.Context, workerType string, limit int) ([]Record, Stamp, error)

	// Trim deletes the oldest records with Seq < before, at most TrimBatch in one
	// call and never the head, and returns the number deleted. The caller decides
	// which records may be trimmed.
	Trim(ctx context.Context, workerType string, before int64) (int, error)

	// WorkerTypes lists the worker types that have records, in byte order. Where another
	// program has written, there may be names among them that CheckWorkerType refuses.
	WorkerTypes(ctx context.Context) ([]string, error)

	// Now reads the store's clock. The stamp was made between the call, less
	// Stamp.MaxAge, and the return.
	Now(ctx context.Context) (Stamp, error)

	// Close frees the ledger's resources. Operations after Close fail with
	// ErrClosed. Close may be called twice.
	Close(ctx context.Context) error
}

// TrimBatch is the largest number of records that one Trim deletes.
const TrimBatch = 500

// Stamp is a reading of the store's own clock.
type Stamp struct {
	// Time is the reading, truncated to Granularity. UTC.
	Time time.Time
	// Granularity is the precision of Time: the clock showed a time in
	// [Time, Time+Granularity).
	Granularity time.Duration
	// MaxAge is how long before the request the stamp may have been made; for
	// example, a cached HTTP Date header. It is zero for a stamp made for this
	// request.
	MaxAge time.Duration
	// Skew is how far the clock of any of the store's servers may be from the one that
	// made the stamp, where that server may give other workers their time: so what two
	// workers take for store time overlaps, whichever servers they asked. It was
	// measured, or is assumed: the store says which. It is zero if there is only one clock.
	Skew time.Duration
	// Server names the server that made the stamp, for logs and events. A change of
	// server means nothing by itself: what counts is whether the times agree.
	Server string
	// Clock names the clock that was read, if equal names always mean the same clock; else it
	// is empty. With a name, Skew covers the other clocks only, and the newest stamp's Skew
	// counts, because an earlier stamp lacks servers that could not be asked then.
	Clock string
	// History names the line of changes that the store goes on with, if it learns that without a request for it: Redis'
	// replication, PostgreSQL's timeline where standbys are asynchronous, the UUID of a collection. Another name says
	// that records may be lost which were acknowledged; it needn't be so. It is empty if the store can't tell, or if what it
	// acknowledges survives each change of the name.
	History string
	// Boottime, unless it is 0, is what the boot-time clock of the machine (CLOCK_BOOTTIME, as this
	// process reads it) showed when the stamp was made, and says that store time is this clock plus an
	// offset which doesn't change from then on. So Time, and each clock that Skew covers, goes on at
	// exactly its rate: a worker that measures time by it allows for no drift and no round trip.
	// Only a store may set it whose time is made from this very reading, in this process. Workers ignore
	// it if their client has a clock of its own, or if it isn't between the call and the return by the
	// client's clock, as in a stamp that was kept. That doesn't show each stamp of another machine: two
	// that were started at the same moment show the same. So set it to 0 in stamps from another process.
	Boottime time.Duration
}

// IsZero reports whether there is no reading.
func (s Stamp) IsZero() bool { return s.Time.IsZero() }
