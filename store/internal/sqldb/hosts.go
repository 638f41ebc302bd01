package sqldb

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// movedPatience is how long a connection that leads to another server than the one before waits for what the others say.
const movedPatience = time.Second

// Survey looks at the server in use, and asks each host that the URI names, if there are several.
func (c *Core[F]) Survey(ctx context.Context) (f F, err error) {
	asked := make(chan []storekit.Host, 1)
	go func() { asked <- c.askHosts(ctx, storekit.CheckHosts) }()
	f, err = c.parts.Look(ctx)
	hosts := <-asked
	if err != nil {
		return f, err
	}
	c.see(f)
	var clocks storekit.Clocks
	var none F
	if last := c.Known(); last != none {
		clocks = last.Shared().Clocks
	}
	own := f.Shared()
	own.Hosts, own.Clocks = hosts, storekit.ClocksFrom(hosts, cmp.Or(own.Process, own.Server), clocks)
	return f, nil
}

func (c *Core[F]) askHosts(ctx context.Context, limit time.Duration) []storekit.Host {
	if len(c.Address.Hosts) < 2 {
		return nil
	}
	return c.parts.AskHosts(ctx, limit)
}

// splitFlaws are those of hosts of which two take writes that the other doesn't have.
func (c *Core[F]) splitFlaws(f F) []storekit.Flaw {
	if flaw, is := c.splitBrain(f.Shared().Hosts); is {
		return []storekit.Flaw{flaw}
	}
	return nil
}

func (c *Core[F]) splitBrain(hosts []storekit.Host) (storekit.Flaw, bool) {
	if c.parts.Writers != nil {
		hosts = c.parts.Writers(hosts)
	}
	return storekit.SplitBrain(CheckServer, hosts)
}

// Moved asks the other hosts whether they take writes, too, when a connection leads to another process than the one before: a
// replica may have been promoted while the old primary goes on.
func (c *Core[F]) Moved(ctx context.Context, to string) (moved bool, err error) {
	used := c.used.Load()
	if moved = used != nil && *used != to; moved {
		if flaw, is := c.splitBrain(c.askHosts(ctx, movedPatience)); is {
			c.Fitness.Forget() // The next operation finds out by itself, and says so.
			return moved, flaw.Refuse()
		}
	}
	c.used.Store(&to)
	return moved, nil
}

// clockFlaws are clocks that are further apart than is assumed.
func (c *Core[F]) clockFlaws(f F) []storekit.Flaw {
	flaws := Flaws{Check: store.CheckServerClocks}
	for _, what := range f.Shared().Clocks.Beyond(c.Assumed()) {
		flaws.Add("synchronise it (NTP)", "%s (serverSkew): workers keep further from the ends of their slots", what)
	}
	return flaws.All
}

// soundClocks says how far the clocks are apart, as was measured, or what is assumed of those that weren't asked.
func (c *Core[F]) soundClocks(f F) (string, error) {
	own := f.Shared()
	unasked := c.parts.Unasked(f)
	for _, h := range own.Hosts {
		if h.Err != nil {
			unasked = h.Name + " didn't answer"
		}
	}
	switch {
	case unasked != "":
		return storekit.Assumed(max(c.Assumed(), DefaultSkew), unasked).Ask(context.Background())
	case len(own.Clocks) == 0:
		return "there is only one: that of " + own.Server, nil
	}
	apart := own.Clocks.Most().Round(10 * time.Microsecond)
	return fmt.Sprintf("apart by %v at most, as was measured; workers allow for %v", apart, c.Skew()), nil
}
