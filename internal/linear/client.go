package linear

import (
	"context"

	"github.com/slotlease/slotlease/store"
)

// sink records calls and sets their times.
type sink interface {
	// begin returns the id to pass to end. If it fails, the call isn't made.
	begin(call) (id int, err error)
	end(id int, r reply)
}

// client is a store.Ledger that records its calls.
type client struct {
	store.Ledger
	name string
	sink sink
}

// record records a call that do makes. If the call can't be recorded, it isn't made.
func (c *client) record(k call, do func(*reply) error) error {
	k.Client = c.name
	id, err := c.sink.begin(k)
	if err != nil {
		return err
	}
	var answer reply
	err = do(&answer)
	answer.Outcome = outcomeOf(err)
	c.sink.end(id, answer)
	return err
}

// Append passes on to the inner ledger.
func (c *client) Append(ctx context.Context, r store.Record) error {
	k := call{Act: actAppend, WorkerType: r.WorkerType, Seq: r.Seq, Record: identify(r.Truncated().Cleaned())}
	return c.record(k, func(*reply) error { return c.Ledger.Append(ctx, r) })
}

// Get passes on to the inner ledger.
func (c *client) Get(ctx context.Context, workerType string, seq int64) (r store.Record, err error) {
	err = c.record(call{Act: actGet, WorkerType: workerType, Seq: seq}, func(answer *reply) error {
		if r, err = c.Ledger.Get(ctx, workerType, seq); err == nil {
			answer.Found = []identity{identify(r)}
		}
		return err
	})
	return r, err
}

// Tail passes on to the inner ledger.
func (c *client) Tail(ctx context.Context, workerType string, limit int) (records []store.Record, stamp store.Stamp, err error) {
	err = c.record(call{Act: actTail, WorkerType: workerType, Seq: int64(limit)}, func(answer *reply) error {
		records, stamp, err = c.Ledger.Tail(ctx, workerType, limit)
		for _, r := range records {
			if err == nil && r.Seq != 0 { // Seq 0 stands for keys that can't be followed.
				answer.Found = append(answer.Found, identify(r))
			}
		}
		return err
	})
	return records, stamp, err
}

// Trim passes on to the inner ledger.
func (c *client) Trim(ctx context.Context, workerType string, before int64) (n int, err error) {
	err = c.record(call{Act: actTrim, WorkerType: workerType, Seq: before}, func(answer *reply) error {
		n, err = c.Ledger.Trim(ctx, workerType, before)
		answer.Removed = n
		return err
	})
	return n, err
}
