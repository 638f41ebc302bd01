package etcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Follower = (*Ledger)(nil)

// AppendAfter puts a record if the one below is still prev, in one transaction: while that has the very value which
// this version writes. If a newer version has written more into it, a second transaction asks for what the first one has read.
func (l *Ledger) AppendAfter(ctx context.Context, r, prev store.Record) error {
	c := l.c
	err := store.CheckAfter(r, prev)
	if err == nil {
		err = r.Check()
	}
	var body, below []byte
	if err == nil {
		body, err = storekit.Encode(r)
	}
	if err == nil {
		below, err = storekit.Encode(prev)
	}
	if err != nil {
		return c.runner.Invalid("append", err)
	}
	_, err = storekit.Run(ctx, c.runner, "append", store.Key(r.WorkerType, r.Seq), func(ctx context.Context) (none struct{}, err error) {
		name, under := c.folder()+storekit.RecordName(r.WorkerType, r.Seq), c.folder()+storekit.RecordName(prev.WorkerType, prev.Seq)
		put := func(same clientv3.Cmp) (*clientv3.TxnResponse, error) {
			return c.client.Txn(ctx).If(absent(name), same).Then(clientv3.OpPut(name, string(body))).
				Else(clientv3.OpGet(name, clientv3.WithCountOnly()), clientv3.OpGet(under)).Commit()
		}
		reply, err := put(clientv3.Compare(clientv3.Value(under), "=", string(below)))
		if err != nil || reply.Succeeded {
			return none, err
		}
		revision, err := c.remains(reply, prev)
		if err != nil {
			return none, err
		}
		reply, err = put(clientv3.Compare(clientv3.ModRevision(under), "=", revision))
		if err == nil && !reply.Succeeded {
			if _, err = c.remains(reply, prev); err == nil {
				err = store.WentBack(prev) // It was put again meanwhile, by another program.
			}
		}
		return none, err
	})
	return err
}

// remains reads why a record wasn't put: its key exists, or the record below isn't prev. Else it returns the revision of that.
func (c *cluster) remains(reply *clientv3.TxnResponse, prev store.Record) (int64, error) {
	gets := make([]*pb.RangeResponse, 2)
	for i := range gets {
		if i < len(reply.Responses) {
			gets[i] = reply.Responses[i].GetResponseRange()
		}
	}
	switch {
	case gets[0].GetCount() > 0:
		return 0, store.ErrConflict
	case len(gets[1].GetKvs()) == 0:
		return 0, store.WentBack(prev)
	}
	kv := gets[1].Kvs[0]
	body, err := c.value(kv)
	if err != nil {
		return 0, storekit.NotStored(err)
	}
	if found := storekit.Decode(prev.WorkerType, prev.Seq, body); found.Defect != "" || !store.SameRecord(found, prev) {
		return 0, store.WentBack(prev)
	}
	return kv.ModRevision, nil
}
