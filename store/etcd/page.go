package etcd

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Page returns the oldest records above a Seq, oldest first. It ranges over the keys of as many Seqs as are wanted and,
// unless all of them are there, reads as other ledgers of objects do.
func (l *Ledger) Page(ctx context.Context, workerType string, after int64, limit int) ([]store.Record, error) {
	wanted := min(limit, store.MaxPage)
	if store.CheckWorkerType(workerType) == nil && wanted > 0 && after >= 0 && after <= store.MaxSeq-int64(wanted) {
		records, err := storekit.Run(ctx, l.c.runner, "page", workerType, func(ctx context.Context) ([]store.Record, error) {
			return l.c.between(ctx, workerType, after, wanted)
		})
		if err != nil || len(records) == wanted {
			return records, err
		}
	}
	return l.ObjectLedger.Page(ctx, workerType, after, limit)
}

// between reads the records with the wanted Seqs above one, oldest first, or up to a gap from the newest of them.
func (c *cluster) between(ctx context.Context, workerType string, after int64, wanted int) (records []store.Record, err error) {
	name := func(seq int64) string { return c.folder() + storekit.RecordName(workerType, seq) }
	// Keys fall as the Seq grows.
	seq, limit := after+int64(wanted), storekit.Piece(0, 0, mostValues)
	for seq > after {
		reply, err := c.client.Get(ctx, name(seq), clientv3.WithRange(name(after+1)+"\x00"), clientv3.WithLimit(int64(limit)))
		if err != nil {
			return nil, err
		}
		limit = storekit.Piece(len(reply.Kvs), size(reply.Kvs), mostValues)
		for _, kv := range reply.Kvs {
			if string(kv.Key) != name(seq) {
				return records, nil
			}
			body, err := c.value(kv)
			if err != nil {
				return nil, err
			}
			records = append(records, storekit.Decode(workerType, seq, body))
			seq--
		}
		if !reply.More {
			break
		}
	}
	slices.Reverse(records)
	return records, nil
}
