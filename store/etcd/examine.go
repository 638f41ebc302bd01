package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
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
	// clockLooks is how often an examination compares the members' clocks, and clockPause how long it waits between.
	clockLooks = 5
	clockPause = 210 * time.Millisecond
)

// Examine asks each endpoint for its state, and tries the rights by transactions that can't succeed. It stores nothing.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	c := l.c
	if l.c.runner.Closed() {
		return nil, c.runner.Invalid("examine", store.ErrClosed)
	}
	e := &storekit.Exam{Clock: c.clock, Scrub: func(text string) string { return c.secrets.Scrub(text) }}
	members, err := c.examineConnection(ctx, e)
	c.examineTLS(e)
	if err != nil {
		e.Skip("no connection", CheckMembers, CheckAlarms, CheckSpace, store.CheckServerClocks, CheckCompaction, store.CheckLedger, store.CheckExpiry,
			store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster)
		return e.Found, nil
	}
	c.examineMembers(e, members)
	c.examineClocks(ctx, e)
	c.examineCompaction(ctx, e)
	c.examineRecords(ctx, e)
	c.examineRights(ctx, e)
	return e.Found, nil
}

// probing runs a step of an examination, on a cluster that may be unfit.
func probing[T any](ctx context.Context, c *cluster, do func(ctx context.Context, client *clientv3.Client) (T, error)) (T, error) {
	v, err := storekit.RunUnchecked(ctx, c.runner, "examine", "", func(ctx context.Context) (v T, err error) {
		client, err := c.dial(ctx)
		if err != nil {
			return v, err
		}
		return do(ctx, client)
	})
	if err != nil {
		err = errors.Unwrap(err) // without the name of the operation
	}
	return v, err
}

// examineConnection asks all endpoints, of which one must answer.
func (c *cluster) examineConnection(ctx context.Context, e *storekit.Exam) ([]member, error) {
	ctx, cancel := e.First(ctx)
	defer cancel()
	began := c.clock.Now()
	members, err := probing(ctx, c, func(ctx context.Context, client *clientv3.Client) ([]member, error) {
		all := c.members(ctx, client, memberTime)
		if len(answering(all)) > 0 {
			return all, nil
		}
		var errs []error
		for _, m := range all {
			errs = append(errs, fmt.Errorf("%s: %w", m.host, m.err))
		}
		return nil, errors.Join(errs...)
	})
	if err != nil {
		e.Failed(store.CheckConnection, store.LevelFail, err)
		return nil, err
	}
	some := answering(members)
	e.OK(store.CheckConnection, fmt.Sprintf("%d of %d endpoints answered in %v, etcd %s", len(some), len(members), e.Since(began), some[0].status.Version))
	return members, nil
}

// examineTLS says how the connection is secured.
func (c *cluster) examineTLS(e *storekit.Exam) {
	switch {
	case c.tls != nil && c.tls.InsecureSkipVerify:
		e.Add(storekit.Flaw{Check: store.CheckTLS, What: "encrypted, and the servers' certificates aren't verified", Remedy: "don't set InsecureSkipVerify"}.Finding(store.LevelWarn))
	case c.tls != nil:
		e.OK(store.CheckTLS, "encrypted, and the servers' certificates are verified")
	case c.loopback():
		e.OK(store.CheckTLS, "not encrypted, to this machine alone")
	default:
		f := storekit.Flaw{Check: store.CheckTLS, What: "not encrypted", Remedy: "use etcds://"}
		if c.user != "" {
			f.What += ": the user's password can be read on the way"
		}
		e.Add(f.Finding(store.LevelWarn))
	}
}

// loopback reports whether all endpoints are on this machine.
func (c *cluster) loopback() bool {
	return !slices.ContainsFunc(c.a.hosts, func(h string) bool {
		host, _, _ := net.SplitHostPort(h)
		return host != "localhost" && !net.ParseIP(host).IsLoopback()
	})
}

// examineMembers judges what the endpoints said.
func (c *cluster) examineMembers(e *storekit.Exam, all []member) {
	flaws := c.flaws(all)
	sound := len(flaws)
	for _, m := range all {
		f := storekit.Flaw{Check: CheckMembers}
		switch {
		case errors.Is(m.err, store.ErrRefused):
			e.Failed(CheckMembers, store.LevelFail, m.err)
			sound = -1
			continue
		case m.err != nil:
			f.What, f.Remedy = fmt.Sprintf("%s: %v", m.host, m.err), "start it, or leave it out"
		case m.status.Leader == 0:
			f.What, f.Remedy = m.host+" knows no leader: the cluster takes no writes, or this member is cut off", "see that most members run and reach each other"
		default:
			continue
		}
		e.Add(f.Finding(store.LevelWarn))
		sound = -1
	}
	if sound < 0 {
		flaws = slices.DeleteFunc(flaws, func(f storekit.Flaw) bool {
			if f.Check == CheckMembers {
				e.Add(f.Finding(store.LevelFail))
			}
			return f.Check == CheckMembers
		})
	} else {
		e.Flaws(CheckMembers, store.LevelFail, flaws, "all endpoints belong to one cluster and know its leader")
	}
	said := ""
	var size, quota int64
	for _, m := range answering(all) {
		said += " " + strings.Join(m.status.Errors, " ")
		if size <= m.status.DbSize {
			size, quota = m.status.DbSize, m.status.DbSizeQuota
		}
	}
	if strings.Contains(said, "NOSPACE") {
		flaws = append(flaws, storekit.Flaw{Check: CheckAlarms, What: "the alarm NOSPACE is on: nothing can be appended", Remedy: "compact and defragment the cluster, then etcdctl alarm disarm"})
	}
	e.Flaws(CheckAlarms, store.LevelFail, flaws, "none is on")
	const mib = 1 << 20
	switch {
	case quota > 0 && size > quota/5*4:
		e.Add(storekit.Flaw{Check: CheckSpace, What: fmt.Sprintf("the database has %d MiB of %d", size/mib, quota/mib), Remedy: "compact and defragment the cluster, or raise --quota-backend-bytes"}.Finding(store.LevelWarn))
	case quota > 0:
		e.OK(CheckSpace, fmt.Sprintf("the database has %d MiB of %d", size/mib, quota/mib))
	default:
		e.OK(CheckSpace, fmt.Sprintf("the database has %d MiB; this version of etcd doesn't say of how many", size/mib))
	}
}

// examineClocks compares the members' clocks by the dates of their replies.
func (c *cluster) examineClocks(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	var apart time.Duration
	list, err := probing(ctx, c, func(ctx context.Context, client *clientv3.Client) (*clientv3.MemberListResponse, error) {
		return client.MemberList(ctx)
	})
	if err == nil && len(c.a.hosts) > 1 {
		apart, err = probing(ctx, c, func(ctx context.Context, _ *clientv3.Client) (time.Duration, error) { return c.apart(ctx) })
	}
	switch {
	case err != nil:
		e.Failed(store.CheckServerClocks, store.LevelWarn, err)
	case c.oneMember && len(list.Members) > 1:
		e.Add(severalMembers(len(list.Members))[0].Finding(store.LevelFail))
	case len(list.Members) == 1:
		e.OK(store.CheckServerClocks, "there is one member, with one clock")
	case len(c.a.hosts) == 1:
		e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew): one endpoint is known", c.skew))
	case apart > c.skew:
		e.Add(storekit.Flaw{Check: store.CheckServerClocks, What: fmt.Sprintf("the members' clocks are apart by more than %v, and %v are assumed (serverSkew)", apart.Round(time.Millisecond), c.skew), Remedy: "see that NTP sets them, or raise serverSkew"}.Finding(store.LevelFail))
	default:
		e.OK(store.CheckServerClocks, fmt.Sprintf("nothing shows them apart by more than %v, as is assumed (serverSkew)", c.skew))
	}
}

// apart is how far the clocks of two endpoints are surely apart, at least. Each date says where the member's clock was
// between the request and the reply, within a second; a few of them narrow that down.
func (c *cluster) apart(ctx context.Context) (time.Duration, error) {
	type ahead struct{ least, most time.Duration } // how far a member's clock is ahead of ours
	known := map[string]ahead{}
	for look := range clockLooks {
		for _, host := range c.a.hosts {
			sent := c.clock.Now()
			stamp, err := c.date(ctx, host)
			received := c.clock.Now()
			if err != nil {
				if ctx.Err() != nil {
					return 0, ctx.Err()
				}
				continue
			}
			now := ahead{stamp.Time.Sub(received), stamp.Time.Add(stamp.Granularity).Sub(sent)}
			if k, ok := known[host]; ok {
				now = ahead{max(k.least, now.least), min(k.most, now.most)}
			}
			known[host] = now
		}
		if look < clockLooks-1 {
			timer := c.clock.Timer(clockPause)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return 0, ctx.Err()
			}
		}
	}
	var apart time.Duration
	for _, a := range known {
		for _, b := range known {
			apart = max(apart, a.least-b.most)
		}
	}
	return apart, nil
}

// examineCompaction asks for what was there at the first revision, which a cluster that is compacted has no more.
func (c *cluster) examineCompaction(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	revision, err := probing(ctx, c, func(ctx context.Context, client *clientv3.Client) (int64, error) {
		reply, err := client.Get(ctx, c.folder()+probe, clientv3.WithRev(1), clientv3.WithCountOnly())
		if err != nil {
			return 0, err
		}
		return reply.Header.Revision, nil
	})
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		e.OK(CheckCompaction, "old revisions are removed")
	case err != nil:
		e.Failed(CheckCompaction, store.LevelWarn, err)
	case revision > manyRevisions:
		e.Add(storekit.Flaw{
			Check: CheckCompaction, What: fmt.Sprintf("all %d revisions are kept: each change, and above all each sign of life of a worker, takes space for ever", revision),
			Remedy: "start etcd with --auto-compaction-mode=periodic --auto-compaction-retention=1h",
		}.Finding(store.LevelWarn))
	default:
		e.OK(CheckCompaction, fmt.Sprintf("not needed yet, after %d revisions", revision))
	}
}

// examineRecords looks at what is below the prefix.
func (c *cluster) examineRecords(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	n, err := probing(ctx, c, func(ctx context.Context, _ *clientv3.Client) (n int, err error) {
		return n, c.List(ctx, c.folder()+records, "", 0, func(storekit.Object) bool { n++; return n < mostKeys })
	})
	switch {
	case errors.Is(err, store.ErrRefused):
		e.OK(store.CheckLedger, "it has records")
		e.Failed(store.CheckExpiry, store.LevelFail, err)
	case err != nil:
		e.Skip("it can't be read", store.CheckLedger, store.CheckExpiry)
	case n == 0:
		e.OK(store.CheckLedger, "there are no records yet, and nothing needs to be created")
		e.OK(store.CheckExpiry, "nothing expires")
	default:
		e.OK(store.CheckLedger, "it has records")
		e.OK(store.CheckExpiry, "none of the records looked at has a lease with which it ends")
	}
}

// examineRights tries what workers do, so that nothing is stored.
func (c *cluster) examineRights(ctx context.Context, e *storekit.Exam) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	try := func(check string, level store.Level, granted string, do func(ctx context.Context, client *clientv3.Client) error) {
		_, err := probing(ctx, c, func(ctx context.Context, client *clientv3.Client) (none struct{}, err error) {
			return none, do(ctx, client)
		})
		switch {
		case err == nil:
			e.OK(check, granted)
		case errors.Is(err, store.ErrDenied):
			e.Add(storekit.Flaw{Check: check, What: err.Error(), Remedy: "etcdctl role grant-permission ROLE --prefix=true readwrite " + c.folder() + ", and give the role to the user"}.Finding(level))
		default:
			e.Failed(check, level, err)
		}
	}
	try(store.CheckRead, store.LevelFail, "granted", func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Get(ctx, c.folder()+records, clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err
	})
	const how = "granted, by a transaction that can't succeed"
	try(store.CheckAppend, store.LevelFail, how, func(ctx context.Context, _ *clientv3.Client) error {
		return c.tryPut(ctx, c.folder()+probe)
	})
	try(store.CheckTrim, store.LevelWarn, how, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Txn(ctx).If(impossible(c.folder() + probe)).Then(clientv3.OpDelete(c.folder() + probe)).Commit()
		return err
	})
	try(store.CheckRoster, store.LevelWarn, how, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Get(ctx, c.folder()+presences, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err == nil {
			err = c.tryPut(ctx, c.folder()+presences+"-/-")
		}
		return err
	})
}

// impossible is true of no key: no revision is below 0.
func impossible(key string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "<", 0)
}

// tryPut asks for a put that can't happen. etcd checks the rights of all that a transaction may do, and the space, before
// it looks at its conditions.
func (c *cluster) tryPut(ctx context.Context, key string) error {
	client, err := c.dial(ctx)
	if err != nil {
		return err
	}
	_, err = client.Txn(ctx).If(impossible(key)).Then(clientv3.OpPut(key, "-")).Commit()
	return err
}
