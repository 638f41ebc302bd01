package etcd

import (
	"errors"
	"net"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// all are the checks of an examination.
var all = []string{
	store.CheckConnection, store.CheckTLS, CheckMembers, CheckAlarms, CheckSpace, store.CheckServerClocks, CheckCompaction,
	store.CheckLedger, store.CheckExpiry, store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster,
}

func TestASoundClusterIsFoundSoundAndUnchanged(t *testing.T) {
	t.Parallel()
	server := etcdpeer.Shared(t)
	uri := fresh(server)
	l := opened(t, Options{URI: uri, OneMember: true})
	for _, records := range []int{0, 2} {
		for seq := range records {
			must(t, "Append()", l.Append(within(t), storetest.Grant("job", int64(seq+1))))
		}
		found := examined(t, l)
		for _, check := range all {
			if f := found[check]; f.Level != store.LevelOK || f.Remedy != "" || f.Text == "" {
				t.Errorf("Examine() with %d records says %+v of %s", records, f, check)
			}
		}
		if len(found) != len(all) {
			t.Errorf("Examine() makes %d checks, want %d", len(found), len(all))
		}
		reply, err := raw(t, server).Get(t.Context(), strings.TrimPrefix(uri, server), clientv3.WithPrefix())
		if err != nil || int(reply.Count) != records {
			t.Errorf("after Examine() there are %d keys, %v, want %d", reply.Count, err, records)
		}
	}
	must(t, "Close()", l.Close(t.Context()))
	if _, err := l.Examine(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Examine() after Close = %v, want ErrClosed", err)
	}
}

func TestExamineFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	users := withUsers(t)
	alarmed := func(kind pb.AlarmType) func(t *testing.T) Options {
		return func(t *testing.T) Options {
			s := etcdpeer.Start(t, etcdpeer.Options{})
			alarm(t, s.URI(), kind)
			return Options{URI: s.URI()}
		}
	}
	for name, c := range map[string]struct {
		options func(t *testing.T) Options
		want    map[string]store.Level
	}{
		"nothing listens": {func(t *testing.T) Options { return Options{URI: "etcd://" + ports(t, 1)[0]} }, map[string]store.Level{store.CheckConnection: store.LevelFail, store.CheckAppend: store.LevelSkip}},
		"no space":        {alarmed(pb.AlarmType_NOSPACE), map[string]store.Level{CheckAlarms: store.LevelFail, store.CheckAppend: store.LevelFail, store.CheckRead: store.LevelOK}},
		"corrupt":         {alarmed(pb.AlarmType_CORRUPT), map[string]store.Level{CheckAlarms: store.LevelFail}},
		"a reader": {func(*testing.T) Options { return Options{URI: users.URI() + "test", User: "reader", Password: canary} }, map[string]store.Level{
			store.CheckRead: store.LevelOK, store.CheckAppend: store.LevelFail, store.CheckTrim: store.LevelWarn, store.CheckRoster: store.LevelWarn,
		}},
		"no rights": {func(*testing.T) Options { return Options{URI: users.URI() + "else", User: "worker", Password: canary} }, map[string]store.Level{
			store.CheckConnection: store.LevelOK, store.CheckRead: store.LevelFail, store.CheckAppend: store.LevelFail, store.CheckTrim: store.LevelWarn, store.CheckRoster: store.LevelWarn,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := opened(t, c.options(t))
			found := examined(t, l)
			for check, level := range c.want {
				if f := found[check]; f.Level != level {
					t.Errorf("Examine() says %+v of %s, want %s", f, check, level)
				} else if level == store.LevelFail && f.Remedy == "" && check != store.CheckConnection && check != store.CheckAppend {
					t.Errorf("Examine() knows no remedy of %+v", f)
				}
			}
			if len(found) != len(all) {
				t.Errorf("Examine() makes %d checks, want %d: %v", len(found), len(all), found)
			}
		})
	}
}

// One endpoint that never answers hides nothing of what the others say.
func TestASilentEndpointHidesNoAlarm(t *testing.T) {
	t.Parallel()
	s := etcdpeer.Start(t, etcdpeer.Options{})
	alarm(t, s.URI(), pb.AlarmType_NOSPACE)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	defer func() { _ = silent.Close() }()
	found := examined(t, opened(t, Options{URI: strings.TrimSuffix(s.URI(), "/") + "," + silent.Addr().String() + "/test"}))
	if f := found[CheckMembers]; f.Level != store.LevelWarn || !strings.Contains(f.Text, silent.Addr().String()) {
		t.Errorf("Examine() says %+v of the members, want the silent one named", f)
	}
	if f := found[CheckAlarms]; f.Level != store.LevelFail || !strings.Contains(f.Text, "NOSPACE") {
		t.Errorf("Examine() says %+v of the alarms, want NOSPACE", f)
	}
}

func TestRightsAreFoundOutWithoutStoring(t *testing.T) {
	t.Parallel()
	users := withUsers(t)
	for user, want := range map[string]error{"worker": nil, "reader": store.ErrDenied} {
		l := opened(t, Options{URI: users.URI() + "test", User: user, Password: canary})
		if err := l.CheckRights(within(t)); !errors.Is(err, want) {
			t.Errorf("CheckRights() of %s = %v, want %v", user, err, want)
		}
		if types, err := l.WorkerTypes(within(t)); err != nil || len(types) > 0 {
			t.Errorf("after CheckRights() there are %v, %v", types, err)
		}
	}
}
