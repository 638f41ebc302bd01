package etcd

import (
	"context"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// mostValues is how many values a list asks for at once, and mostKeys how many keys without values.
	mostValues = 200
	mostKeys   = 5000
)

var _ storekit.Objects = (*cluster)(nil)

// Create puts a key unless it exists, in one transaction, which etcd's client doesn't send twice.
func (c *cluster) Create(ctx context.Context, name string, body []byte) error {
	client, err := c.dial(ctx)
	if err != nil {
		return err
	}
	reply, err := client.Txn(ctx).If(absent(name)).Then(clientv3.OpPut(name, string(body))).Commit()
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
	client, err := c.dial(ctx)
	if err != nil {
		return err
	}
	_, err = client.Put(ctx, name, string(body))
	return err
}

// Read gets the value of a key, linearizably, as etcd does by default.
func (c *cluster) Read(ctx context.Context, name string) ([]byte, error) {
	client, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := client.Get(ctx, name)
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

// List ranges over keys, linearizably. If it is known how many are wanted, it asks for the values, too.
func (c *cluster) List(ctx context.Context, prefix, after string, hint int, visit func(o storekit.Object) bool) error {
	client, err := c.dial(ctx)
	if err != nil {
		return err
	}
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	// The next possible key, byte by byte.
	from := max(prefix, after+"\x00")
	for {
		options := []clientv3.OpOption{end, clientv3.WithLimit(mostKeys), clientv3.WithKeysOnly()}
		if hint > 0 {
			options = []clientv3.OpOption{end, clientv3.WithLimit(int64(min(hint, mostValues)))}
		}
		reply, err := client.Get(ctx, from, options...)
		if err != nil {
			return err
		}
		for _, kv := range reply.Kvs {
			o := storekit.Object{Name: string(kv.Key)}
			body, err := c.value(kv)
			if err != nil {
				return err
			}
			if hint > 0 {
				o.Body = body
			}
			if !visit(o) {
				return nil
			}
			from = o.Name + "\x00"
		}
		if !reply.More {
			return nil
		}
	}
}

// Delete deletes a key.
func (c *cluster) Delete(ctx context.Context, name string) (bool, error) {
	client, err := c.dial(ctx)
	if err != nil {
		return false, err
	}
	reply, err := client.Delete(ctx, name)
	if err != nil {
		return false, err
	}
	return reply.Deleted > 0, nil
}

// Close ends the client and its connections.
func (c *cluster) Close() error {
	c.end()
	c.web.CloseIdleConnections()
	c.dialing.Lock()
	defer c.dialing.Unlock()
	if c.client != nil {
		_ = c.client.Close() // The error says that it is closed.
	}
	return nil
}
