package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Folders of a ledger, below its prefix.
const (
	records   = "ledger/"
	presences = "roster/"
)

const (
	// memberTime is how long a member is waited for, and moreTime how long others are after one has answered.
	memberTime = 5 * time.Second
	moreTime   = 500 * time.Millisecond
)

// member is what an endpoint says of itself.
type member struct {
	host   string
	status *clientv3.StatusResponse
	err    error
}

// members asks all endpoints.
func (c *cluster) members(ctx context.Context, more time.Duration) []member {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan int, len(c.a.hosts))
	all := make([]member, len(c.a.hosts))
	found := make([]member, len(c.a.hosts))
	for i, host := range c.a.hosts {
		all[i] = member{host: host, err: errors.New("no answer in time")}
		go func() {
			s, err := c.client.Status(ctx, c.a.web(host, ""))
			found[i] = member{host, s, err}
			answers <- i
		}()
	}
	enough := c.clock.Timer(memberTime)
	defer func() { enough.Stop() }()
	answered := false
	for range c.a.hosts {
		select {
		case i := <-answers:
			if all[i] = found[i]; all[i].err == nil && !answered {
				answered = true
				enough.Stop()
				enough = c.clock.Timer(more)
			}
		case <-enough.C:
			return all
		case <-ctx.Done():
			return all
		}
	}
	return all
}

// check finds out whether the cluster can keep a ledger.
func (c *cluster) check(ctx context.Context) error {
	all := c.members(ctx, moreTime)
	var errs []error
	for _, m := range all {
		if errors.Is(m.err, store.ErrRefused) {
			return m.err
		}
		errs = append(errs, m.err)
	}
	if len(answering(all)) == 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.Join(errs...)
	}
	flaws := append(corrupt(answering(all)), learners(all)...)
	if c.oneMember {
		list, err := c.client.MemberList(ctx)
		if err != nil {
			return err
		}
		flaws = append(flaws, severalMembers(len(list.Members))...)
	}
	if len(flaws) > 0 {
		return flaws[0].Refuse()
	}
	return nil
}

// answering are the members that have answered.
func answering(all []member) (some []member) {
	for _, m := range all {
		if m.err == nil {
			some = append(some, m)
		}
	}
	return some
}

// alarmed reports whether a member says that an alarm is on.
func alarmed(some []member, alarm string) bool {
	return slices.ContainsFunc(some, func(m member) bool { return strings.Contains(strings.Join(m.status.Errors, " "), alarm) })
}

// corrupt is the flaw of a cluster whose members differ.
func corrupt(some []member) []storekit.Flaw {
	if !alarmed(some, "CORRUPT") {
		return nil
	}
	return []storekit.Flaw{{Check: CheckAlarms, What: "the alarm CORRUPT is on: members differ in what they keep", Remedy: "restore the cluster, with all workers stopped"}}
}

// learners is the flaw of endpoints of which none that answers has a vote.
func learners(all []member) []storekit.Flaw {
	some := answering(all)
	if len(some) == 0 || slices.ContainsFunc(some, func(m member) bool { return !m.status.IsLearner }) {
		return nil
	}
	return []storekit.Flaw{{
		Check: CheckMembers, Level: store.LevelFail, What: "the endpoints that answer are learners, which serve no requests", Remedy: "name members with a vote, too",
	}}
}

// severalMembers is the flaw of a cluster that has more members than its options say.
func severalMembers(n int) []storekit.Flaw {
	if n <= 1 {
		return nil
	}
	return []storekit.Flaw{{
		Check: store.CheckServerClocks, Level: store.LevelFail, Remedy: "give serverSkew, the most that their clocks differ by, in its place",
		What: fmt.Sprintf("the cluster has %d members, and as many clocks, though oneMember=true is set", n),
	}}
}

// expiring is the flaw of a record that etcd will delete by itself.
func expiring(key string) storekit.Flaw {
	return storekit.Flaw{Check: store.CheckExpiry, What: fmt.Sprintf("the key %.120q has a lease, with which etcd deletes it", key), Remedy: "find the program that puts keys there, and use another prefix"}
}
