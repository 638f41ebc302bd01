package etcd

import (
	"math/rand/v2"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotlease/slotlease/internal/failovers"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
)

// Leaders of three members die while workers work, or hang, until another leads.
func TestFailovers(t *testing.T) {
	failovers.Run(t, func(t *testing.T) failovers.World {
		t.Helper()
		members, uri := ofThree(t)
		return failovers.World{
			Open: func() store.Ledger { return opened(t, Options{URI: uri}) },
			Fail: func(r *rand.Rand) {
				m := leader(t, members)
				end, again := m.Kill, m.Restart
				if r.IntN(2) == 0 {
					end, again = m.Pause, m.Resume
				}
				end()
				leader(t, slices.DeleteFunc(slices.Clone(members), func(x *etcdpeer.Server) bool { return x == m }))
				failovers.Sleep(r)
				again()
			},
		}
	})
}

// leader is the member that leads, once they have elected one.
func leader(t *testing.T, members []*etcdpeer.Server) (leads *etcdpeer.Server) {
	t.Helper()
	suites.Eventually(t, "a member leads", func() bool {
		for _, m := range members {
			c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Addr()}})
			must(t, "New()", err)
			s, err := c.Status(within(t), m.Addr())
			_ = c.Close()
			if err == nil && s.Leader == s.Header.MemberId {
				leads = m
			}
		}
		return leads != nil
	})
	return leads
}
