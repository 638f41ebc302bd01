package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// nextMember is how long one member is waited for before another is asked for the time, too.
const nextMember = 500 * time.Millisecond

// Now asks a member for its version, which costs it next to nothing, and takes the date of the reply. It asks the one
// that answered last and, while there is no answer, the others. What is known of the members' clocks comes first: it is part of
// the stamp.
func (c *cluster) Now(ctx context.Context) (store.Stamp, error) {
	if err := c.compare(ctx); err != nil {
		return store.Stamp{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		host  int
		stamp store.Stamp
		err   error
	}
	answers := make(chan answer, len(c.a.hosts))
	first := int(c.teller.Load())
	asked := 0
	ask := func() {
		host := (first + asked) % len(c.a.hosts)
		asked++
		go func() {
			stamp, err := c.date(ctx, c.a.hosts[host])
			answers <- answer{host, stamp, err}
		}()
	}
	ask()
	var errs []error
	for {
		timer := c.clock.Timer(nextMember)
		select {
		case a := <-answers:
			timer.Stop()
			if a.err == nil {
				c.teller.Store(int64(a.host))
				storekit.Note(ctx, a.stamp)
				return a.stamp, nil
			}
			if errs = append(errs, a.err); len(errs) == len(c.a.hosts) {
				return store.Stamp{}, errors.Join(errs...)
			}
			if asked < len(c.a.hosts) {
				ask()
			}
		case <-timer.C:
			if asked < len(c.a.hosts) {
				ask()
			}
		case <-ctx.Done():
			timer.Stop()
			return store.Stamp{}, ctx.Err()
		}
	}
}

// date is the time of one member.
func (c *cluster) date(ctx context.Context, host string) (store.Stamp, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.a.web(host, "/version"), nil)
	if err != nil {
		return store.Stamp{}, err
	}
	reply, err := c.web.Do(req)
	if err != nil {
		return store.Stamp{}, err
	}
	defer func() { _ = reply.Body.Close() }()
	// The connection is used again if all was read.
	_, _ = io.Copy(io.Discard, io.LimitReader(reply.Body, 64<<10))
	if stamp := c.dates(host).Stamp(reply); !stamp.IsZero() && reply.StatusCode == http.StatusOK {
		return stamp, nil
	}
	return store.Stamp{}, fmt.Errorf("GET /version of %s: status %d, without a date: etcd's client port must serve HTTP, too", host, reply.StatusCode)
}
