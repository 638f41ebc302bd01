package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// The checks of this store alone.
const (
	// CheckMembers: all endpoints answer, belong to one cluster and have a leader.
	CheckMembers = "members"
	// CheckAlarms: no alarm is on.
	CheckAlarms = "alarms"
	// CheckSpace: the database is well below its quota, as far as the cluster says.
	CheckSpace = "space"
	// CheckCompaction: old revisions are removed.
	CheckCompaction = "compaction"
)

const (
	// probe is a key, below the folders, that nothing is ever stored at.
	probe = records + "-/-"
	// manyRevisions is from how many revisions on a cluster should have been compacted.
	manyRevisions = 100_000
)

// exam is one examination: what the endpoints have said, for the rows that judge it.
type exam struct {
	*cluster

	said atomic.Pointer[[]member]
}

// rows is the table of checks.
func (c *exam) rows() []storekit.Check {
	grant := "etcdctl role grant-permission ROLE --prefix=true readwrite " + c.folder() + ", and give the role to the user"
	const how = "granted, by a transaction that can't succeed"
	right := func(name string, level store.Level, granted string, try func(ctx context.Context) error) storekit.Check {
		return storekit.Check{Name: name, Level: level, Grant: grant, Ask: func(ctx context.Context) (string, error) { return granted, try(ctx) }}
	}
	return []storekit.Check{
		{Name: store.CheckConnection, Level: store.LevelFail, Ask: c.answered, Needed: "no connection"},
		{Name: store.CheckTLS, Level: store.LevelWarn, Ask: c.secured, Alone: true},
		{Name: CheckMembers, Level: store.LevelWarn, Ask: c.judgeMembers},
		{Name: CheckAlarms, Level: store.LevelFail, Ask: c.judgeAlarms},
		{Name: CheckSpace, Level: store.LevelWarn, Ask: c.judgeSpace},
		{Name: store.CheckServerClocks, Level: store.LevelWarn, Ask: c.judgeClocks},
		{Name: CheckCompaction, Level: store.LevelWarn, Ask: c.judgeCompaction},
		{Name: store.CheckLedger, Level: store.LevelFail, Ask: c.judgeLedger},
		{Name: store.CheckExpiry, Level: store.LevelFail, Ask: c.judgeExpiry},
		right(store.CheckRead, store.LevelFail, "granted", func(ctx context.Context) error { return c.count(ctx, records) }),
		right(store.CheckAppend, store.LevelFail, how, func(ctx context.Context) error { return c.never(ctx, probe, clientv3.OpPut) }),
		right(store.CheckTrim, store.LevelWarn, how, func(ctx context.Context) error {
			return c.never(ctx, probe, func(key, _ string, o ...clientv3.OpOption) clientv3.Op { return clientv3.OpDelete(key, o...) })
		}),
		right(store.CheckRoster, store.LevelWarn, how, func(ctx context.Context) error {
			if err := c.count(ctx, presences); err != nil {
				return err
			}
			return c.never(ctx, presences+"-/-", clientv3.OpPut)
		}),
	}
}

// answered asks all endpoints, of which one must answer.
func (c *exam) answered(ctx context.Context) (string, error) {
	all := c.members(ctx, memberTime)
	some := answering(all)
	if len(some) > 0 {
		c.said.Store(&all)
		return fmt.Sprintf("%d of %d endpoints, etcd %s, answered", len(some), len(all), some[0].status.Version), nil
	}
	var errs []error
	for _, m := range all {
		errs = append(errs, fmt.Errorf("%s: %w", m.host, m.err))
	}
	return "", errors.Join(errs...)
}

// secured says how the connection is secured.
func (c *cluster) secured(context.Context) (string, error) {
	f := storekit.Flaw{Check: store.CheckTLS, What: "not encrypted", Remedy: "use etcds://"}
	switch {
	case c.tls != nil && c.tls.InsecureSkipVerify:
		f.What, f.Remedy = "encrypted, and the servers' certificates aren't verified", "don't set InsecureSkipVerify"
	case c.tls != nil:
		return "encrypted, and the servers' certificates are verified", nil
	case !slices.ContainsFunc(c.a.hosts, elsewhere):
		return "not encrypted, to this machine alone", nil
	case c.user != "":
		f.What += ": the user's password can be read on the way"
	}
	return storekit.Found("", f)
}

// elsewhere reports whether an endpoint is on another machine.
func elsewhere(endpoint string) bool {
	host, _, _ := net.SplitHostPort(endpoint)
	return host != "localhost" && !net.ParseIP(host).IsLoopback()
}

func (c *exam) judgeMembers(context.Context) (string, error) {
	all := *c.said.Load()
	flaws := learners(all)
	for _, m := range all {
		f := storekit.Flaw{Check: CheckMembers}
		switch known, refused := errors.AsType[storekit.Flaw](m.err); {
		case refused:
			f = known
			f.Check, f.Level = CheckMembers, store.LevelFail
		case m.err != nil:
			f.What, f.Remedy = fmt.Sprintf("%s: %v", m.host, m.err), "start it, or leave it out"
		case m.status.Leader == 0:
			f.What, f.Remedy = m.host+" knows no leader: the cluster takes no writes, or this member is cut off", "see that most members run and reach each other"
		default:
			continue
		}
		flaws = append(flaws, f)
	}
	return storekit.Found("all endpoints belong to one cluster and know its leader", flaws...)
}

func (c *exam) judgeAlarms(context.Context) (string, error) {
	some := answering(*c.said.Load())
	flaws := corrupt(some)
	if alarmed(some, "NOSPACE") {
		flaws = append(flaws, storekit.Flaw{Check: CheckAlarms, What: "the alarm NOSPACE is on: nothing can be appended", Remedy: "compact and defragment the cluster, then etcdctl alarm disarm"})
	}
	return storekit.Found("none is on", flaws...)
}

func (c *exam) judgeSpace(context.Context) (string, error) {
	var size, quota int64
	for _, m := range answering(*c.said.Load()) {
		if size <= m.status.DbSize {
			size, quota = m.status.DbSize, m.status.DbSizeQuota
		}
	}
	const mib = 1 << 20
	has := fmt.Sprintf("the database has %d MiB of %d", size/mib, quota/mib)
	switch {
	case quota == 0:
		return fmt.Sprintf("the database has %d MiB; this version of etcd doesn't say of how many", size/mib), nil
	case size > quota/5*4:
		return storekit.Found("", storekit.Flaw{Check: CheckSpace, What: has, Remedy: "compact and defragment the cluster, or raise --quota-backend-bytes"})
	}
	return has, nil
}

// judgeClocks compares the members' clocks by the dates of their replies.
func (c *cluster) judgeClocks(ctx context.Context) (string, error) {
	list, err := c.client.MemberList(ctx)
	if err != nil {
		return "", err
	}
	members := len(list.Members)
	switch {
	case c.oneMember && members > 1:
		return storekit.Found("", severalMembers(members)...)
	case members == 1:
		return "there is one member, with one clock", nil
	}
	var apart distance
	if len(c.a.hosts) > 1 {
		if apart, err = c.apart(ctx); err != nil {
			return "", err
		}
	}
	if what := apart.Exceeds(c.skew); what != "" {
		return storekit.Found("", storekit.Flaw{Check: store.CheckServerClocks, What: what, Remedy: storekit.SetClocks})
	}
	if why := c.unmeasured(apart, members); why != "" {
		return storekit.Assumed(c.skew, why).Ask(ctx)
	}
	return fmt.Sprintf("apart by %v at most, as measured", apart.Most.Round(time.Millisecond)), nil
}

// judgeCompaction asks for what was there at the first revision, which a cluster that is compacted has no more.
func (c *cluster) judgeCompaction(ctx context.Context) (string, error) {
	reply, err := c.client.Get(ctx, c.folder()+probe, clientv3.WithRev(1), clientv3.WithCountOnly())
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return "old revisions are removed", nil
	case err != nil:
		return "", err
	case reply.Header.Revision > manyRevisions:
		return storekit.Found("", storekit.Flaw{
			Check: CheckCompaction, Remedy: "start etcd with --auto-compaction-mode=periodic --auto-compaction-retention=1h",
			What: fmt.Sprintf("all %d revisions are kept: each change, and above all each sign of life of a worker, takes space for ever", reply.Header.Revision),
		})
	}
	return fmt.Sprintf("not needed yet, after %d revisions", reply.Header.Revision), nil
}

// some looks at the newest records, and returns how many.
func (c *cluster) some(ctx context.Context) (n int, err error) {
	err = c.List(ctx, c.folder()+records, "", 0, func(storekit.Object) bool { n++; return n < mostKeys })
	return n, err
}

func (c *cluster) judgeLedger(ctx context.Context) (string, error) {
	n, err := c.some(ctx)
	switch {
	case err != nil && !errors.Is(err, store.ErrRefused):
		return "", storekit.Skip("it can't be read")
	case err == nil && n == 0:
		return "there are no records yet, and nothing needs to be created", nil
	}
	return "it has records", nil
}

func (c *cluster) judgeExpiry(ctx context.Context) (string, error) {
	_, err := c.some(ctx)
	if f, unfit := errors.AsType[storekit.Flaw](err); unfit {
		return storekit.Found("", f)
	}
	if err != nil {
		return "", storekit.Skip("the records can't be read")
	}
	return "none of the records looked at has a lease with which it ends", nil
}

// count counts what is in a folder.
func (c *cluster) count(ctx context.Context, folder string) error {
	_, err := c.client.Get(ctx, c.folder()+folder, clientv3.WithPrefix(), clientv3.WithCountOnly())
	return err
}

// never asks for a change that can't happen: no revision is below 0. etcd checks the rights of all that a transaction may do, and
// the space, before it looks at its conditions.
func (c *cluster) never(ctx context.Context, key string, change func(key, value string, o ...clientv3.OpOption) clientv3.Op) error {
	key = c.folder() + key
	_, err := c.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "<", 0)).Then(change(key, "-")).Commit()
	return err
}
