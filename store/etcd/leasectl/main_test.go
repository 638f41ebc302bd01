package main

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/slotlease/slotlease/store/etcd"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
	"github.com/slotlease/slotlease/testutil/leasectltest"
)

const canary = "c4naryS3cret"

func TestMain(m *testing.M) { leasectltest.Main(m, main) }

// withUser starts a server on which worker, with the password canary, may do everything.
func withUser(t *testing.T) *etcdpeer.Server {
	t.Helper()
	s := etcdpeer.Start(t, etcdpeer.Options{Flags: []string{"--bcrypt-cost=4"}})
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Addr()}, DialTimeout: 20 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(client.RoleAdd(t.Context(), "root"))
	for _, user := range []string{"root", "worker"} {
		must(client.UserAdd(t.Context(), user, canary))
		must(client.UserGrantRole(t.Context(), user, "root"))
	}
	must(client.AuthEnable(t.Context()))
	return s
}

func TestTheCommandsWorkOnEtcd(t *testing.T) {
	t.Parallel()
	server := withUser(t)
	leasectltest.Run(t, leasectltest.Harness{
		Fresh: func(t *testing.T) (string, []string) {
			t.Helper()
			return server.URI() + strings.ToLower(rand.Text()) + "?oneMember=true&user=worker", []string{"ETCD_PASSWORD=" + canary}
		},
		Form: "etcd://HOST:PORT,HOST:PORT/PREFIX?user=NAME, or etcds://…, with ETCD_PASSWORD",
		// The time is known to ±0.5 s at first.
		Every: 10 * time.Second, Failover: 5 * time.Second,
		Secrets: []string{canary}, Withheld: []string{"ETCD_PASSWORD"},
		Bad: map[string]string{
			"etcd://worker:" + canary + "@h/x":   "neither a user nor a password before the host",
			"etcd://h/x?password=" + canary:      "must hold no password: give passwordFile=PATH, or ETCD_PASSWORD in the environment",
			"etcd://h/x?usr=" + canary:           "parameter usr is unknown",
			"etcd://h/x?user=" + "worker":        "a user needs a password",
			"etcds://h/x?cert=/" + canary:        "cert and key go together",
			"etcd:///" + canary + "?user=worker": "try: etcd://HOST:PORT,HOST:PORT/PREFIX?user=NAME, as in leasectl --help",
		},
		Checks: []string{etcd.CheckMembers, etcd.CheckAlarms, etcd.CheckSpace, etcd.CheckCompaction},
	})
}

func TestAWrongPasswordAndAServerThatIsGoneAreToldApart(t *testing.T) {
	t.Parallel()
	server := withUser(t)
	for _, c := range []struct {
		uri, password string
		code          int
	}{
		{server.URI() + "x?user=worker", canary + "x", 5},
		{server.URI() + "x?user=nobody", canary, 5},
		{server.URI() + "x", "", 5},
		{"etcd://127.0.0.1:1/x?user=worker", canary, 3},
	} {
		for _, args := range [][]string{{"status", "--timeout", "3s"}, {"doctor"}, {"run", "--worker-type", "t", "--every", "24h", "--once", "--timeout", "3s", "--", "true"}} {
			want := c.code
			if args[0] == "doctor" {
				want = 11
			}
			got := leasectltest.Leasectl(t, []string{"LEASECTL_STORE=" + c.uri, "ETCD_PASSWORD=" + c.password}, args...)
			if got.Code != want || strings.Contains(got.Stdout+got.Stderr, canary) {
				t.Errorf("leasectl %s on %s = %+v, want code %d, and no password", args[0], c.uri, got, want)
			}
		}
	}
}
