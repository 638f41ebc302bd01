package redis

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

// surveyTime bounds how long a check waits for the names of servers besides the one that it uses, and then for those.
const surveyTime = time.Second

// survey is what a check has found of the servers that have the ledger, or may get it.
type survey struct {
	hosts  []storekit.Host
	clocks storekit.Distance
	// answered is how many servers have answered, by whatever addresses.
	answered int
}

// silent are the servers that haven't answered.
func (f *survey) silent() (all []string) {
	for _, h := range f.hosts {
		if h.Err != nil {
			all = append(all, h.Name)
		}
	}
	return all
}

// knows reports whether all servers that answered an earlier survey have answered this one, too.
func (f *survey) knows(earlier survey) bool {
	return !slices.ContainsFunc(earlier.hosts, func(was storekit.Host) bool {
		return was.Err == nil && !slices.ContainsFunc(f.hosts, func(h storekit.Host) bool { return h.Name == was.Name && h.Err == nil })
	})
}

// surveyAll asks all servers that may have the ledger what they are, and what time it is: those that sentinels name or that the
// name of the host leads to, and the replicas of the one that is used.
func (l *Ledger) surveyAll(ctx context.Context, s server) survey {
	var found survey
	named, replicas := l.candidates(ctx, s)
	names := slices.Concat([]string{s.addr}, named, replicas)
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 1 {
		host, _, _ := net.SplitHostPort(l.address.hosts[0])
		begun := l.clock.Now()
		found.hosts = storekit.AskHosts(ctx, l.clock, surveyTime, names, func(ctx context.Context, i int) (storekit.Host, error) {
			name, _, _ := net.SplitHostPort(names[i])
			if l.address.service == "" && slices.Contains(named, names[i]) {
				name = host // which its certificate has
			}
			h, err := l.askServer(ctx, names[i], name, begun)
			h.Writes = h.Writes && slices.Contains(named, names[i])
			return h, err
		})
	}
	found.hosts = slices.DeleteFunc(found.hosts, func(h storekit.Host) bool {
		// Of a name's addresses some may be no server's.
		return h.Err != nil && l.address.service == "" && !slices.Contains(replicas, h.Name)
	})
	processes, clocks := map[string]bool{}, map[string]storekit.Ahead{}
	for _, h := range found.hosts {
		if h.Err == nil && !processes[h.Process] {
			processes[h.Process], clocks[h.Name] = true, storekit.Ahead{Least: h.Ahead - h.Within, Most: h.Ahead + h.Within}
		}
	}
	found.answered, found.clocks = len(clocks), storekit.Apart(clocks)
	if old := l.surveyed.Load(); old != nil {
		found.clocks = found.clocks.Keep(old.clocks, found.silent())
	}
	l.surveyed.Store(&found)
	return found
}

// candidates are the servers to which the URI leads, and the replicas as far as they are known.
func (l *Ledger) candidates(ctx context.Context, s server) (named, replicas []string) {
	ctx, cancel := l.clock.WithTimeout(ctx, surveyTime)
	defer cancel()
	replicas = slices.Clone(s.followers)
	host, port, _ := net.SplitHostPort(l.address.hosts[0])
	switch {
	case l.address.service != "":
		var mu sync.Mutex
		listed := -1
		_ = storekit.Several(len(l.address.hosts), func(i int) error {
			primary, others, err := l.askSentinel(ctx, l.address.hosts[i])
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				named, replicas = append(named, primary), append(replicas, others...)
				listed = max(listed, len(others))
			}
			return nil
		})
		if listed >= 0 {
			l.listed.Store(int64(listed))
		}
		return named, replicas
	case l.failover:
		return []string{l.primary.current()}, replicas
	case s.cluster || net.ParseIP(host) != nil: // In a cluster each primary has keys of its own.
		return l.address.hosts[:1], replicas
	}
	found, err := l.lookup(ctx, host)
	if err != nil {
		return l.address.hosts, replicas
	}
	for _, ip := range found {
		named = append(named, net.JoinHostPort(ip, port))
	}
	return named, replicas
}

// askServer asks a server what it is, and what time it is, by a connection for that.
// Local time is what has passed since a moment: the time of day may be set meanwhile.
func (l *Ledger) askServer(ctx context.Context, addr, name string, begun time.Time) (h storekit.Host, err error) {
	k, err := l.reach(ctx, addr, name)
	if err != nil {
		return h, err
	}
	defer k.close()
	if _, err := k.ask(ctx, command{"PING"}); err != nil { // It logs in, so that the time comes by a single round trip.
		return h, err
	}
	sent := l.clock.Since(begun)
	replies, err := k.ask(ctx, command{"INFO"})
	received := l.clock.Since(begun)
	if err != nil {
		return h, err
	}
	text, err := replies[0].Text()
	if err != nil {
		return h, err
	}
	about := parseInfo(text)
	at, err := about.time()
	// The clock was read between the two: in their middle, give or take half of what passed.
	return storekit.Host{
		Process: about.process, Writes: about.role == "master",
		Ahead: at.Sub(begun.Add((sent + received) / 2)), Within: (received-sent)/2 + time.Microsecond,
	}, err
}

// agreeTime is how long sentinels take at most to agree after a failover. They tell each other of it every 2 s, and until it is told,
// the former primary goes on.
const agreeTime = 3 * time.Second

// split is the flaw of a URI that leads to several primaries, if it does. It isn't settled yet if the sentinels may agree in a moment.
func (l *Ledger) split(f survey) (flaws []storekit.Flaw, settled bool) {
	flaw, is := storekit.SplitBrain(CheckPrimary, f.hosts)
	if !is {
		l.splitSince.Store(nil)
		return nil, true
	}
	now := l.clock.Now()
	l.splitSince.CompareAndSwap(nil, &now)
	since := l.splitSince.Load()
	return []storekit.Flaw{flaw}, l.address.service == "" || since != nil && now.Sub(*since) >= agreeTime
}

// unmeasured is why a survey doesn't show that the clocks are as is assumed; empty if it does.
func (l *Ledger) unmeasured(f survey) string {
	switch silent := f.silent(); {
	case len(silent) > 0:
		return "no answer came from " + strings.Join(silent, ", ")
	case f.answered < 2:
		return "no other server is there to be asked"
	case f.clocks.Most > l.assumed():
		return fmt.Sprintf("%v at most is all that could be measured", f.clocks.Most.Round(time.Millisecond))
	}
	return ""
}

// exceeds says that clocks are further apart than is assumed, as of the newest check.
func (l *Ledger) exceeds() string {
	if f := l.surveyed.Load(); f != nil && l.assumed() > 0 {
		return f.clocks.Exceeds(l.assumed())
	}
	return ""
}
