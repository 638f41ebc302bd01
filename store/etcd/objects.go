package etcd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// mostValues is how many values a list asks for at once at most, and mostKeys how many keys without values.
	mostValues = 200
	mostKeys   = 5000
)

var _ storekit.Objects = (*cluster)(nil)

// Create puts a key unless it exists, in one transaction, which etcd's client doesn't send twice.
func (c *cluster) Create(ctx context.Context, name string, body []byte) error {
	reply, err := c.client.Txn(ctx).If(absent(name)).Then(clientv3.OpPut(name, string(body))).Commit()
	if err == nil && !reply.Succeeded {
		err = store.ErrConflict
	}
	return err
}

// absent is true of a key that doesn't exist: its revision of creation is 0 then.
func absent(name string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(name), "=", 0)
}

// Replace puts a key.
func (c *cluster) Replace(ctx context.Context, name string, body []byte) error {
	_, err := c.client.Put(ctx, name, string(body))
	return err
}

// Read gets the value of a key, linearizably, as etcd does by default.
func (c *cluster) Read(ctx context.Context, name string) ([]byte, error) {
	reply, err := c.client.Get(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case len(reply.Kvs) == 0:
		return nil, store.ErrNotFound
	}
	return c.value(reply.Kvs[0])
}

// value is that of a key, which must not end with a lease of etcd's.
func (c *cluster) value(kv *mvccpb.KeyValue) ([]byte, error) {
	if kv.Lease != 0 && strings.HasPrefix(string(kv.Key), c.folder()+records) {
		return nil, expiring(string(kv.Key)).Refuse()
	}
	if kv.Value == nil {
		return []byte{}, nil
	}
	return kv.Value, nil
}

// List ranges over keys, linearizably. If it is known how many are wanted, it asks for the values, too. etcd counts all keys of a
// range, whatever the limit: so where the names are those of records it first ranges over as many Seqs as are wanted.
func (c *cluster) List(ctx context.Context, prefix, after string, hint int, visit func(o storekit.Object) bool) error {
	all := clientv3.GetPrefixRangeEnd(prefix)
	// The next possible key, byte by byte.
	from := max(prefix, after+"\x00")
	first, _ := c.newest.Load(prefix)
	known, _ := first.(string)
	to := cmp.Or(near(prefix, cmp.Or(after, known), hint), all)
	limit := storekit.Piece(0, 0, min(hint, mostValues))
	for {
		options := []clientv3.OpOption{clientv3.WithRange(to), clientv3.WithLimit(mostKeys), clientv3.WithKeysOnly()}
		if hint > 0 {
			options = []clientv3.OpOption{clientv3.WithRange(to), clientv3.WithLimit(int64(limit))}
		}
		reply, err := c.client.Get(ctx, from, options...)
		if err != nil {
			return err
		}
		limit = storekit.Piece(len(reply.Kvs), size(reply.Kvs), mostValues)
		for _, kv := range reply.Kvs {
			o := storekit.Object{Name: string(kv.Key)}
			body, err := c.value(kv)
			if err != nil {
				return err
			}
			if hint > 0 {
				o.Body = body
			}
			if from == prefix && hint > 0 {
				c.newest.Store(prefix, o.Name)
			}
			if !visit(o) {
				return nil
			}
			from = o.Name + "\x00"
		}
		switch {
		case reply.More:
		case to == all:
			return nil
		default:
			from, to = max(from, to), all
		}
	}
}

// near is where the names of so many records from one on end, if there are no gaps. It is empty if that isn't the name of a record.
func near(prefix, name string, records int) string {
	last, ok := strings.CutPrefix(name, prefix)
	n, err := strconv.ParseInt(last, 10, 64)
	if !ok || err != nil || n < 0 || records < 1 || n > store.MaxSeq-int64(records) || len(last) != len(strconv.Itoa(store.MaxSeq)) {
		return ""
	}
	return fmt.Sprintf("%s%0*d", prefix, len(last), n+int64(records)+1)
}

// size is how many bytes the values of keys have.
func size(kvs []*mvccpb.KeyValue) (bytes int) {
	for _, kv := range kvs {
		bytes += len(kv.Value)
	}
	return bytes
}

// Delete deletes a key.
func (c *cluster) Delete(ctx context.Context, name string) (bool, error) {
	reply, err := c.client.Delete(ctx, name)
	if err != nil {
		return false, err
	}
	return reply.Deleted > 0, nil
}

// Close ends the client and its connections.
func (c *cluster) Close() error {
	c.end()
	c.distances.close()
	c.web.CloseIdleConnections()
	_ = c.client.Close() // The error says that it is closed.
	return nil
}
