package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// alarm sets an alarm of the server.
func alarm(t testing.TB, server string, kind pb.AlarmType) {
	t.Helper()
	client := raw(t, server)
	status, err := client.Status(t.Context(), client.Endpoints()[0])
	must(t, "Status()", err)
	if _, err := pb.NewMaintenanceClient(client.ActiveConnection()).Alarm(t.Context(), &pb.AlarmRequest{Action: pb.AlarmRequest_ACTIVATE, MemberID: status.Header.MemberId, Alarm: kind}); err != nil {
		t.Fatal(err)
	}
}

func TestWhatEtcdRefusesIsSurelyNotStored(t *testing.T) {
	t.Parallel()
	users := withUsers(t)
	cases := map[string]struct {
		options func(t *testing.T) Options
		is      error
		// text is part of the error's.
		text string
	}{
		"no space": {func(t *testing.T) Options {
			s := etcdpeer.Start(t, etcdpeer.Options{})
			alarm(t, s.URI(), pb.AlarmType_NOSPACE)
			return Options{URI: s.URI()}
		}, nil, "NOSPACE"},
		"a small quota": {func(t *testing.T) Options {
			s := etcdpeer.Start(t, etcdpeer.Options{Flags: []string{"--quota-backend-bytes=16384"}})
			return Options{URI: s.URI()}
		}, nil, "NOSPACE"},
		"a request that is too large": {func(t *testing.T) Options {
			return Options{URI: etcdpeer.Start(t, etcdpeer.Options{Flags: []string{"--max-request-bytes=100"}}).URI()}
		}, nil, "too large"},
		"no right to write": {func(*testing.T) Options {
			return Options{URI: users.URI() + "test", User: "reader", Password: canary}
		}, store.ErrDenied, "roles"},
		"another prefix": {func(*testing.T) Options {
			return Options{URI: users.URI() + "elsewhere", User: "worker", Password: canary}
		}, store.ErrDenied, "roles"},
		"no user": {func(*testing.T) Options { return Options{URI: users.URI() + "test"} }, store.ErrDenied, "asks for a user"},
		"a wrong password": {func(*testing.T) Options {
			return Options{URI: users.URI() + "test", User: "worker", Password: canary + "!"}
		}, store.ErrDenied, "wrong"},
		"an unknown user": {func(*testing.T) Options {
			return Options{URI: users.URI() + "test", User: "nobody", Password: canary}
		}, store.ErrDenied, ""},
		"a corrupt cluster": {func(t *testing.T) Options {
			s := etcdpeer.Start(t, etcdpeer.Options{})
			alarm(t, s.URI(), pb.AlarmType_CORRUPT)
			return Options{URI: s.URI()}
		}, store.ErrRefused, "CORRUPT"},
		"a port where nothing listens": {func(t *testing.T) Options {
			return Options{URI: "etcd://" + ports(t, 1)[0]}
		}, nil, "refused"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := opened(t, c.options(t))
			ctx := within(t)
			for range 2 {
				err := l.Append(ctx, storetest.Grant("job", 1))
				if !errors.Is(err, store.ErrNotStored) || ctx.Err() != nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("Append() = %v, want %q, %v and that nothing was stored", err, c.text, c.is)
				}
				if c.is == nil && (errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrConflict)) {
					t.Errorf("Append() = %v, want no other meaning", err)
				}
				if text := fmt.Sprint(err, store.Detail(err)); strings.Contains(text, canary) {
					t.Errorf("the error shows a password: %s", text)
				}
			}
		})
	}
}

func TestARecordThatEtcdWouldDeleteIsRefused(t *testing.T) {
	t.Parallel()
	server := etcdpeer.Shared(t)
	client := raw(t, server)
	uri := fresh(server)
	l := opened(t, Options{URI: uri})
	ctx := within(t)
	must(t, "Append()", l.Append(ctx, storetest.Grant("job", 1)))
	reply, err := client.Get(ctx, strings.TrimPrefix(uri, server)+"/", clientv3.WithPrefix())
	if err != nil || len(reply.Kvs) != 1 {
		t.Fatal(reply, err)
	}
	lease, err := client.Grant(ctx, 600)
	must(t, "Grant()", err)
	put(t, client, string(reply.Kvs[0].Key), string(reply.Kvs[0].Value), clientv3.WithLease(lease.ID))
	if _, _, err := l.Tail(ctx, "job", 1); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Tail() = %v, want that it is refused", err)
	}
	if _, err := l.Get(ctx, "job", 1); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Get() = %v, want that it is refused", err)
	}
	if f := examined(t, l)[store.CheckExpiry]; f.Level != store.LevelFail || f.Remedy == "" {
		t.Errorf("Examine() says %+v of it", f)
	}
}

// What can't be provoked here is known by its code.
func TestErrorsHaveTheirMeaning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err       error
		is        error
		notStored bool
	}{
		{rpctypes.ErrTooManyRequests, store.ErrThrottled, true},
		{rpctypes.ErrTimeout, nil, false},
		{rpctypes.ErrTimeoutDueToLeaderFail, nil, false},
		{rpctypes.ErrTimeoutDueToConnectionLost, nil, false},
		{rpctypes.ErrLeaderChanged, nil, false},
		{rpctypes.ErrStopped, nil, false},
		{rpctypes.ErrNoLeader, nil, false},
		{rpctypes.ErrUnhealthy, nil, false},
		{status.Error(codes.Unavailable, "transport is closing"), nil, false},
		{status.Error(codes.DeadlineExceeded, "late"), nil, false},
		{status.Error(codes.Unknown, "etcdserver: permission denied, or not"), nil, false},
		{status.Error(codes.Unauthenticated, "by a proxy"), store.ErrDenied, false},
		{status.Error(codes.PermissionDenied, "by a proxy"), store.ErrDenied, false},
		{context.Canceled, nil, false},
	} {
		if m := meaning(c.err); !errors.Is(m.Is, c.is) || (m.Is == nil) != (c.is == nil) || m.NotStored != c.notStored {
			t.Errorf("meaning(%v) = %+v, want %v and not stored: %v", c.err, m, c.is, c.notStored)
		}
	}
}
