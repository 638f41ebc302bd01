package etcd

import (
	"context"
	"errors"
	"net"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/slotlease/slotlease/store"
)

// A request that had a connection may have come to the server before that broke.
func TestOnlyWhatHadNoConnectionIsSurelyNotSent(t *testing.T) {
	for name, from := range map[string]net.Addr{"no connection": nil, "a connection": &net.TCPAddr{}} {
		send := func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
			for _, o := range opts {
				if p, ok := o.(grpc.PeerCallOption); ok {
					*p.PeerAddr = peer.Peer{Addr: from}
				}
			}
			return status.Error(codes.Unavailable, "the connection is gone")
		}
		err := (&cluster{}).each(t.Context(), keyValues+"Txn", &pb.TxnRequest{}, &pb.TxnResponse{}, nil, send)
		if got := errors.Is(err, store.ErrNotStored); got != (from == nil) {
			t.Errorf("with %s: %v, surely not stored: %v", name, err, got)
		}
	}
}
