package etcd

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

const canary = "c4naryS3cret"

// withUsers starts a server with authentication: root, and a worker and a reader whose roles allow test prefixes. All
// have the password canary.
func withUsers(t testing.TB, flags ...string) *etcdpeer.Server {
	t.Helper()
	s := etcdpeer.Start(t, etcdpeer.Options{Flags: append(flags, "--bcrypt-cost=4")})
	client := raw(t, s.URI())
	must := func(_ any, err error) {
		t.Helper()
		must(t, "Tail()", err)
	}
	ctx := within(t)
	for user, permission := range map[string]clientv3.PermissionType{"root": -1, "worker": clientv3.PermissionType(clientv3.PermReadWrite), "reader": clientv3.PermissionType(clientv3.PermRead)} {
		must(client.UserAdd(ctx, user, canary))
		must(client.RoleAdd(ctx, user))
		must(client.UserGrantRole(ctx, user, user))
		if permission >= 0 {
			must(client.RoleGrantPermission(ctx, user, "test", "tesu", permission))
		}
	}
	must(client.AuthEnable(ctx))
	return s
}

func TestOverTLSTheServersAndTheClientsAreChecked(t *testing.T) {
	t.Parallel()
	cert, key := documenttest.Certificate(t, "leases.example")
	s := etcdpeer.Start(t, etcdpeer.Options{Cert: cert, Key: key, Flags: []string{"--client-cert-auth", "--trusted-ca-file", cert}})
	l := opened(t, Options{URI: s.URI() + "test?ca=" + cert + "&cert=" + cert + "&key=" + key + "&oneMember=true"})
	ctx := within(t)
	must(t, "Append()", l.Append(ctx, storetest.Grant("job", 1)))
	now, err := l.Now(ctx)
	if age := time.Since(now.Time); err != nil || age < 0 || age > 3*time.Second || now.Granularity != time.Second || now.MaxAge != 0 || now.Skew != 0 {
		t.Errorf("Now() = %+v, %v, want the time of now, fresh, in whole seconds, of one clock", now, err)
	}

	for _, uri := range []string{s.URI() + "test", s.URI() + "test?ca=" + cert} {
		stranger := opened(t, Options{URI: uri})
		ctx := within(t)
		if err := stranger.Append(ctx, storetest.Grant("job", 2)); err == nil || ctx.Err() != nil || !errors.Is(err, store.ErrNotStored) {
			t.Errorf("Append() by %s = %v, want an error that says that nothing was stored, at once", uri, err)
		}
		if _, err := stranger.Now(ctx); err == nil || ctx.Err() != nil {
			t.Errorf("Now() by %s = %v, want an error at once", uri, err)
		}
	}
	findings := examined(t, l)
	if f := findings[store.CheckTLS]; f.Level != store.LevelOK || !strings.Contains(f.Text, "verified") {
		t.Errorf("Examine() says %+v of TLS", f)
	}
}

func TestAServerMayHaveACertificateOfAnotherName(t *testing.T) {
	t.Parallel()
	cert, key := documenttest.Certificate(t, "leases.example")
	s := etcdpeer.Start(t, etcdpeer.Options{Cert: cert, Key: key})
	uri := strings.Replace(s.URI(), "127.0.0.1", "localhost", 1) + "test?ca=" + cert
	for seq, parameter := range []string{"", "&serverName=leases.example", "&serverName=127.0.0.1", "&serverName=other.example"} {
		l, named := opened(t, Options{URI: uri + parameter}), seq == 1 || seq == 2
		err := l.Append(within(t), storetest.Grant("job", int64(seq+1)))
		_, asked := l.Now(within(t)) // by another protocol
		for what, err := range map[string]error{"Append()": err, "Now()": asked} {
			if named != (err == nil) || !named && !strings.Contains(err.Error(), "certificate is valid for leases.example") {
				t.Errorf("%s by localhost with %q = %v, want nil by a name that the certificate has: %v", what, parameter, err, named)
			}
		}
		if !named && !errors.Is(err, store.ErrNotStored) {
			t.Errorf("Append() by a server of another name = %v, want that nothing was stored", err)
		}
		if f := examined(t, l)[store.CheckConnection]; named != (f.Level == store.LevelOK) {
			t.Errorf("Examine() by localhost with %q says %+v", parameter, f)
		}
	}
}

func TestATokenThatHasExpiredIsRenewed(t *testing.T) {
	t.Parallel()
	s := withUsers(t, "--auth-token-ttl=1")
	l := opened(t, Options{URI: s.URI() + "test", User: "worker", Password: canary})
	for seq := range int64(3) {
		if err := l.Append(within(t), storetest.Grant("job", seq+1)); err != nil {
			t.Fatalf("Append() = %v, want nil with a new token", err)
		}
		if got, _, err := l.Tail(within(t), "job", 10); err != nil || len(got) != int(seq)+1 {
			t.Fatalf("Tail() = %d records, %v", len(got), err)
		}
		time.Sleep(2500 * time.Millisecond)
	}
}

func TestALearnerIsNoEndpointAlone(t *testing.T) {
	t.Parallel()
	leader, learner := withLearner(t)
	for uri, want := range map[string]string{
		learner.URI() + "test": "learners",
		leader.URI()[:len(leader.URI())-1] + "," + learner.Addr() + "/test": "",
	} {
		l := opened(t, Options{URI: uri})
		for n := range int64(6) {
			err := l.Append(within(t), storetest.Grant("job", n+1))
			if want == "" && err != nil || want != "" && (!errors.Is(err, store.ErrRefused) || !errors.Is(err, store.ErrNotStored) || !strings.Contains(err.Error(), want)) {
				t.Errorf("Append() by %s = %v, want %q", uri, err, want)
			}
		}
	}
}

// ports are free ports of the loopback interface.
func ports(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, "Listen()", err)
		defer func() { _ = l.Close() }()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// peerFlags are the flags of a member of a cluster whose members have these addresses.
func peerFlags(n int, addrs []string, state string) []string {
	var all []string
	for i, a := range addrs {
		all = append(all, name(i)+"=http://"+a)
	}
	return []string{
		"--name", name(n), "--initial-cluster", strings.Join(all, ","), "--initial-cluster-state", state, "--initial-cluster-token", addrs[0],
		"--listen-peer-urls", "http://" + addrs[n], "--initial-advertise-peer-urls", "http://" + addrs[n],
	}
}

func name(n int) string { return string(rune('a' + n)) }

// withLearner starts a cluster of a member and a learner.
func withLearner(t testing.TB) (leader, learner *etcdpeer.Server) {
	t.Helper()
	addrs := ports(t, 2)
	leader = etcdpeer.Start(t, etcdpeer.Options{Flags: peerFlags(0, addrs[:1], "new")})
	if _, err := raw(t, leader.URI()).MemberAddAsLearner(within(t), []string{"http://" + addrs[1]}); err != nil {
		t.Fatal(err)
	}
	return leader, etcdpeer.Start(t, etcdpeer.Options{Flags: peerFlags(1, addrs, "existing")})
}

// ofThree starts a cluster of three members, and returns a URI of all.
func ofThree(t *testing.T) (members []*etcdpeer.Server, uri string) {
	t.Helper()
	_ = etcdpeer.Shared(t) // or skip
	addrs := ports(t, 3)
	members = make([]*etcdpeer.Server, 3)
	done := make(chan bool)
	for n := range members {
		go func() {
			defer func() { done <- true }() // Start may end the goroutine.
			members[n] = etcdpeer.Start(t, etcdpeer.Options{Flags: peerFlags(n, addrs, "new")})
		}()
	}
	for range members {
		<-done
	}
	var hosts []string
	for _, m := range members {
		if m == nil {
			t.FailNow()
		}
		hosts = append(hosts, m.Addr())
	}
	return members, "etcd://" + strings.Join(hosts, ",") + "/test"
}

// examined are the findings of an examination by their checks.
func examined(t testing.TB, l *Ledger) map[string]store.Finding {
	t.Helper()
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	by := map[string]store.Finding{}
	for _, f := range found {
		if was, twice := by[f.Check]; !twice || was.Level == store.LevelOK {
			by[f.Check] = f
		}
		if strings.Contains(f.Text+f.Remedy, canary) {
			t.Errorf("Examine() shows a password: %+v", f)
		}
	}
	return by
}

func TestAClusterSurvivesTheLossOfAMember(t *testing.T) {
	t.Parallel()
	members, uri := ofThree(t)
	l := opened(t, Options{URI: uri})
	seq := int64(0)
	// write appends until the record is there.
	write := func() {
		t.Helper()
		seq++
		documenttest.Comes(t, "Append()", func(ctx context.Context, _ int) error {
			err := l.Append(ctx, storetest.Grant("job", seq))
			if errors.Is(err, store.ErrConflict) {
				return nil
			}
			return err
		})
	}
	for range 5 {
		write()
	}
	if f := examined(t, l); f[CheckMembers].Level != store.LevelOK || !strings.Contains(f[store.CheckServerClocks].Text, "measured") {
		t.Errorf("Examine() = %+v", f)
	}
	members[0].Kill()
	for range 5 {
		write()
	}
	if now, err := l.Now(within(t)); err != nil || now.Skew != DefaultServerSkew {
		t.Errorf("Now() with a member killed = %+v, %v", now, err)
	}
	if f := examined(t, l)[CheckMembers]; f.Level != store.LevelWarn || !strings.Contains(f.Text, members[0].Addr()) {
		t.Errorf("Examine() with a member killed says %+v of the members", f)
	}
	members[0].Restart()
	members[1].Pause()
	began := time.Now()
	if _, err := l.Now(within(t)); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("Now() with a member paused = %v after %v", err, time.Since(began))
	}
	for range 5 {
		write()
	}
	members[1].Resume()
	var got []store.Record
	documenttest.Comes(t, "Tail()", func(ctx context.Context, _ int) (err error) {
		got, _, err = l.Tail(ctx, "job", 100)
		return err
	})
	if len(got) != int(seq) || got[0].Seq != seq {
		t.Errorf("Tail() = %d records, want all %d that were acknowledged", len(got), seq)
	}
	one := opened(t, Options{URI: uri + "?oneMember=true"})
	if err := one.Append(within(t), storetest.Grant("job", seq+1)); !errors.Is(err, store.ErrRefused) || !errors.Is(err, store.ErrNotStored) || !strings.Contains(err.Error(), "3 members") {
		t.Errorf("Append() with oneMember = %v, want that it is refused", err)
	}
	if f := examined(t, one)[store.CheckServerClocks]; f.Level != store.LevelFail {
		t.Errorf("Examine() with oneMember says %+v of the clocks", f)
	}
}

func TestAClusterThatHasLostItsDataIsRefused(t *testing.T) {
	t.Parallel()
	s := etcdpeer.Start(t, etcdpeer.Options{})
	l := opened(t, Options{URI: s.URI()})
	for seq := range int64(5) {
		must(t, "Append()", l.Append(within(t), storetest.Grant("job", seq+1)))
	}
	s.RestartEmpty()
	client := raw(t, s.URI())
	var err error
	for n := range 10 { // Also when there are more revisions than there were.
		suites.Eventually(t, "the ledger is connected again", func() bool {
			_, _, err = l.Tail(within(t), "job", 1)
			return !errors.Is(err, store.ErrNotStored)
		})
		if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "has lost") {
			t.Fatalf("Tail() after %d puts = %v, want that it is refused", n, err)
		}
		put(t, client, "a", "b")
	}
	if err := opened(t, Options{URI: s.URI()}).Append(within(t), storetest.Grant("job", 1)); err != nil {
		t.Errorf("Append() by a ledger that is opened anew = %v, want nil", err)
	}
}

func TestEndpointsOfTwoClustersAreRefused(t *testing.T) {
	t.Parallel()
	addrs := ports(t, 1)
	other := etcdpeer.Start(t, etcdpeer.Options{Flags: peerFlags(0, addrs, "new")})
	shared := etcdpeer.Shared(t)
	l := opened(t, Options{URI: fresh(strings.TrimSuffix(shared, "/") + "," + other.Addr() + "/")})
	for range 3 {
		if err := l.Append(within(t), storetest.Grant("job", 1)); !errors.Is(err, store.ErrRefused) || !errors.Is(err, store.ErrNotStored) {
			t.Errorf("Append() = %v, want that it is refused", err)
		}
	}
	if f := examined(t, l)[CheckMembers]; f.Level != store.LevelFail || f.Remedy == "" {
		t.Errorf("Examine() says %+v of the members", f)
	}
}

// etcd counts all keys of a range, also of one with a limit: a range over a whole ledger takes longer and longer.
func TestListsRangeOverAsManySeqsAsAreWanted(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"p/9007199254740000": "p/9007199254740003", "p/0000000000000000": "p/0000000000000003", "p/9007199254740990": "",
		"p/900719925474000": "", "p/x007199254740000": "", "p/-007199254740000": "", "q/9007199254740000": "", "": "",
	} {
		if got := near("p/", name, 2); got != want {
			t.Errorf("near(%q) = %q, want %q", name, got, want)
		}
	}
	l := opened(t, Options{URI: fresh(etcdpeer.Shared(t))})
	for _, seq := range []int64{1, 2, 3, 90, 91} { // A gap ends no list.
		must(t, "Append()", l.Append(within(t), storetest.Grant("job", seq)))
	}
	for range 2 { // Then the newest is known.
		for limit, want := range map[int]int{1: 1, 2: 2, 3: 3, 9: 5} {
			if got, _, err := l.Tail(within(t), "job", limit); err != nil || len(got) != want || got[0].Seq != 91 {
				t.Errorf("Tail(%d) = %d records, %v, want %d from 91 on", limit, len(got), err, want)
			}
		}
	}
}
