package store

import (
	"context"
	"time"
)

// Ledger is a document store that keeps the ledgers of any number of worker
// types. It is safe for concurrent use.
type Ledger interface {
	// Init creates what the store needs (collections, tables, files). It may be
	// repeated at will and changes nothing that is there. Implementations must
	// also work when it was never called, or fail with a clear error.
	Init(ctx context.Context) error

	// Append inserts r unless its key (WorkerType, Seq) exists. It returns
	// ErrConflict if the key exists, even if by an earlier try of the very same
	// record, and ErrInvalid (nothing was sent) if r.Check fails. Any other error
	// means that the outcome is unknown: the record may be stored now or later.
	Append(ctx context.Context, r Record) error

	// Get returns the record at a key, or ErrNotFound. A stored document whose
	// envelope can't be decoded is returned with Defect set and a nil error.
	// Information (what isn't of the envelope) that is missing, of a wrong type, or
	// that Record.Cleaned empties comes back empty, and is never a Defect: a newer
	// version may write more of it, and its leases must be obeyed.
	Get(ctx context.Context, workerType string, seq int64) (Record, error)

	// Tail returns the newest records, at most limit of them, newest first:
	// none, and no error, for an empty ledger. Documents are decoded as by Get.
	// Keys that can't be followed (Seq not in 1 … MaxSeq, or unreadable) are passed
	// over; if there are any, one of them comes first, in addition to limit, with
	// Defect set and Seq 0. Keys below 1 are never followed, but need not be
	// reported.
	//
	// The Stamp is the zero Stamp if the store gives no time for free.
	Tail(ctx context.Context, workerType string, limit int) ([]Record, Stamp, error)

	// Trim deletes the oldest records with Seq < before, at most TrimBatch in one
	// call, and never the head. It returns how many it deleted. Which records
	// may be trimmed is the caller's decision.
	Trim(ctx context.Context, workerType string, before int64) (int, error)

	// WorkerTypes lists the worker types that have records, in byte order.
	WorkerTypes(ctx context.Context) ([]string, error)

	// Now asks the store for its clock. The stamp was made between the call and
	// its return, but for Stamp.MaxAge.
	Now(ctx context.Context) (Stamp, error)

	// Close frees what the ledger holds. Operations after Close fail with
	// ErrClosed. Close may be called twice.
	Close(ctx context.Context) error
}

// TrimBatch is the largest number of records that one Trim deletes.
const TrimBatch = 500

// Stamp is a reading of the store's own clock.
type Stamp struct {
	// Time is the reading, truncated to Granularity. UTC.
	Time time.Time
	// Granularity says how much may have been cut off: the clock showed a time in
	// [Time, Time+Granularity).
	Granularity time.Duration
	// MaxAge is how long before the request the stamp may have been made, as for
	// a cached HTTP Date header. Zero for a stamp made for this request.
	MaxAge time.Duration
	// Skew is how far the clocks of the store's servers may be apart: an
	// assumption about the store, not a measurement. Zero if one clock serves all.
	Skew time.Duration
	// Server names the server that made the stamp. A change is treated as a jump
	// of the clock.
	Server string
}

// IsZero reports whether there is no reading.
func (s Stamp) IsZero() bool { return s.Time.IsZero() }
