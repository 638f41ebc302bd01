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

// Append passes on to the inner ledger.
func (c *client) Append(ctx context.Context, r store.Record) error {
	id, err := c.sink.begin(call{
		Client: c.name, Act: actAppend, WorkerType: r.WorkerType, Seq: r.Seq,
		Record: identify(r.Truncated().Cleaned()),
	})
	if err != nil {
		return err
	}
	err = c.Ledger.Append(ctx, r)
	c.sink.end(id, reply{Outcome: outcomeOf(err)})
	return err
}

// Get passes on to the inner ledger.
func (c *client) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	id, err := c.sink.begin(call{Client: c.name, Act: actGet, WorkerType: workerType, Seq: seq})
	if err != nil {
		return store.Record{}, err
	}
	r, err := c.Ledger.Get(ctx, workerType, seq)
	answer := reply{Outcome: outcomeOf(err)}
	if err == nil {
		answer.Found = []identity{identify(r)}
	}
	c.sink.end(id, answer)
	return r, err
}

// Tail passes on to the inner ledger.
func (c *client) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	id, err := c.sink.begin(call{Client: c.name, Act: actTail, WorkerType: workerType, Seq: int64(limit)})
	if err != nil {
		return nil, store.Stamp{}, err
	}
	records, stamp, err := c.Ledger.Tail(ctx, workerType, limit)
	answer := reply{Outcome: outcomeOf(err)}
	if err == nil {
		answer.Found = make([]identity, 0, len(records))
		for _, r := range records {
			if r.Seq != 0 { // It stands for keys that can't be followed.
				answer.Found = append(answer.Found, identify(r))
			}
		}
	}
	c.sink.end(id, answer)
	return records, stamp, err
}

// Trim passes on to the inner ledger.
func (c *client) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	id, err := c.sink.begin(call{Client: c.name, Act: actTrim, WorkerType: workerType, Seq: before})
	if err != nil {
		return 0, err
	}
	n, err := c.Ledger.Trim(ctx, workerType, before)
	c.sink.end(id, reply{Outcome: outcomeOf(err), Removed: n})
	return n, err
}
