package storekit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/benbjohnson/clock"
)

// CheckHosts is how long a check may wait for hosts that don't answer: a connection to another region takes ten round trips, with TLS
// and a password.
const CheckHosts = 3 * time.Second

// Host is what a server that a URI names said of itself.
type Host struct {
	// Name is how the URI names it.
	Name string
	// Process names the server's process, by whatever name it was asked: two names may lead to one.
	Process string
	// Writes says that it takes writes.
	Writes bool
	// Ahead is how far its clock is ahead of this machine's, negative if it is late, give or take Within.
	Ahead, Within time.Duration
	// Err is why it said nothing.
	Err error
}

// AskHosts asks hosts, all at once, and returns what each said, in their order. One that hasn't answered within the limit has said
// nothing. ask may go on after the return, until its context ends.
func AskHosts(ctx context.Context, c clock.Clock, limit time.Duration, names []string, ask func(ctx context.Context, i int) (Host, error)) []Host {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := c.AfterFunc(limit, cancel)
	defer timer.Stop()
	type answer struct {
		i    int
		host Host
	}
	answers := make(chan answer, len(names))
	for i := range names {
		go func() {
			h, err := ask(ctx, i)
			h.Err = err
			answers <- answer{i, h}
		}()
	}
	hosts := make([]Host, len(names))
	for i, name := range names {
		hosts[i] = Host{Name: name, Err: errSilent}
	}
	for range names {
		select {
		case a := <-answers:
			a.host.Name = names[a.i]
			hosts[a.i] = a.host
		case <-ctx.Done():
			return hosts
		}
	}
	return hosts
}

// errSilent is the error of a host that said nothing in time.
var errSilent = errors.New("no answer in time")

// SplitBrain is the flaw of hosts of which two servers take writes, as after a standby was promoted while the old primary goes
// on: each has a ledger of its own, and nobody on the one sees who holds a lease on the other.
func SplitBrain(check string, hosts []Host) (flaw Flaw, is bool) {
	for i, a := range hosts {
		for _, b := range hosts[i+1:] {
			if a.Err == nil && b.Err == nil && a.Writes && b.Writes && a.Process != b.Process {
				return Flaw{
					Check: check, Remedy: "stop the one that isn't to be the primary, or let all workers name the other one alone",
					What: fmt.Sprintf("two servers take writes, %s and %s, so that two workers may hold one slot", a.Name, b.Name),
				}, true
			}
		}
	}
	return Flaw{}, false
}

// Clocks are how far the clocks of other servers are from that of the one in use, by the names of their hosts.
type Clocks map[string]Clock

// Clock is one of them: ahead, or late if that is negative, give or take within.
type Clock struct{ Ahead, Within time.Duration }

// ClocksFrom compares the clocks of hosts with that of one process. What was known of those that say nothing now is kept, since
// each may be the one that takes over.
func ClocksFrom(hosts []Host, process string, known Clocks) Clocks {
	all := Clocks{}
	used := slices.IndexFunc(hosts, func(h Host) bool { return h.Err == nil && h.Process == process })
	for _, h := range hosts {
		last, has := known[h.Name]
		switch {
		case used >= 0 && h.Err == nil && h.Process != process:
			all[h.Name] = Clock{h.Ahead - hosts[used].Ahead, h.Within + hosts[used].Within}
		case has && h.Err != nil:
			all[h.Name] = last
		}
	}
	return all
}

// Most is how far they may be apart.
func (c Clocks) Most() (most time.Duration) {
	for _, one := range c {
		most = max(most, one.Ahead.Abs()+one.Within)
	}
	return most
}

// Sure are those that are surely further apart than is assumed. A measurement that took long says little.
func (c Clocks) Sure(assumed time.Duration) Clocks {
	sure := maps.Clone(c)
	maps.DeleteFunc(sure, func(_ string, one Clock) bool { return one.Ahead.Abs()-one.Within <= assumed })
	return sure
}

// Beyond are those that are surely further apart than is assumed, for people.
func (c Clocks) Beyond(assumed time.Duration) (texts []string) {
	sure := c.Sure(assumed)
	for _, name := range slices.Sorted(maps.Keys(sure)) {
		one := sure[name]
		side := "ahead of"
		if one.Ahead < 0 {
			side = "behind"
		}
		texts = append(texts, fmt.Sprintf("the clock of %s is %v %s that of the server in use, and more than %v apart", name, one.Ahead.Abs().Round(time.Millisecond), side, assumed))
	}
	return texts
}
