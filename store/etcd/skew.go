package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// clockLooks is how often the members' clocks are compared at a time, clockPause how long is waited between, and clockTime
	// how long a member may take. Dates are whole seconds: so the looks see each clock change, and know it to a tenth.
	clockLooks = 10
	clockPause = 105 * time.Millisecond
	clockTime  = time.Second
	// clockAgain is how long a comparison counts, and clockSoon how long one for which not all have answered.
	clockAgain = time.Minute
	clockSoon  = 5 * time.Second
)

// distance is how far the members' clocks are apart, as far as members have answered; silent are the others.
type distance struct {
	storekit.Distance

	silent []string
}

// distances compares the members' clocks now and then, when somebody asks for the time.
type distances struct {
	mu      sync.Mutex
	known   *distance
	at      time.Time     // when the newest comparison began
	looking chan struct{} // closed at its end
	looks   sync.WaitGroup
	closed  bool
}

// compare begins to compare the clocks unless that was done a moment ago, and waits for the end if nothing is known yet.
func (c *cluster) compare(ctx context.Context) error {
	if c.oneMember || c.readOnly || len(c.a.hosts) < 2 {
		return nil
	}
	s := &c.distances
	s.mu.Lock()
	lasts := clockAgain
	if s.known == nil {
		lasts = 0
	} else if len(s.known.silent) > 0 {
		lasts = clockSoon
	}
	if now := c.clock.Now(); s.looking == nil && !s.closed && now.Sub(s.at) >= lasts {
		done := make(chan struct{})
		s.looking, s.at = done, now
		s.looks.Go(func() {
			found, err := c.apart(c.life)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.looking = nil
			close(done)
			if err != nil || len(found.silent) == len(c.a.hosts) {
				return // The ledger was closed, or nobody is there.
			}
			if s.known != nil {
				found.Distance = found.Keep(s.known.Distance, found.silent)
			}
			s.known = &found
		})
	}
	first := s.looking
	if s.known != nil {
		first = nil
	}
	s.mu.Unlock()
	if first == nil {
		return nil
	}
	select {
	case <-first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close waits for the end of a comparison, which ends with the cluster's life.
func (s *distances) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.looks.Wait()
}

// found is the newest comparison; all zero if there is none.
func (s *distances) found() distance {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		return distance{}
	}
	return *s.known
}

// Warning says that the members' clocks are further apart than is assumed. It asks nobody.
func (l *Ledger) Warning() string {
	why := l.c.distances.found().Exceeds(l.c.skew)
	if why != "" {
		why += ": " + storekit.SetClocks
	}
	return why
}

// apart compares the clocks of the endpoints. Each date says where a member's clock was between the request and the reply,
// within a second; several of them narrow that down.
func (c *cluster) apart(ctx context.Context) (s distance, err error) {
	known, silent := map[string]storekit.Ahead{}, map[string]bool{} // Who is silent once isn't waited for again.
	begun := c.clock.Now()
	// The time of day may be set meanwhile: only what has passed counts.
	local := func() time.Time { return begun.Add(c.clock.Since(begun)) }
	var mu sync.Mutex
	for look := range clockLooks {
		within, cancel := c.clock.WithTimeout(ctx, clockTime)
		var asked sync.WaitGroup
		for _, host := range slices.DeleteFunc(slices.Clone(c.a.hosts), func(host string) bool { return silent[host] }) {
			asked.Go(func() {
				sent := local()
				stamp, err := c.date(within, host)
				received := local()
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					silent[host] = true
					return
				}
				now := storekit.Ahead{Least: stamp.Time.Sub(received), Most: stamp.Time.Add(stamp.Granularity).Sub(sent)}
				if k, ok := known[host]; ok {
					now = now.And(k)
				}
				known[host] = now
			})
		}
		asked.Wait()
		cancel()
		if look < clockLooks-1 {
			storekit.Pause(ctx, c.clock, clockPause)
		}
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
	}
	s.Distance = storekit.Apart(known)
	for _, host := range c.a.hosts {
		if silent[host] {
			s.silent = append(s.silent, host)
		}
	}
	return s, nil
}

// unmeasured is why a comparison doesn't show that the clocks are as is assumed; empty if it does.
func (c *cluster) unmeasured(s distance, members int) string {
	switch named := len(c.a.hosts); {
	case members > named:
		return fmt.Sprintf("of %d members %d are named: name all", members, named)
	case len(s.silent) > 0:
		return "no answer came from " + strings.Join(s.silent, ", ")
	case s.Most > c.skew:
		return fmt.Sprintf("%v at most is all that could be measured", s.Most.Round(time.Millisecond))
	}
	return ""
}
