package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
)

// clockPartition is the partition that is queried for the time. Any would do; no
// worker type can have this name.
const clockPartition = "-clock"

// Now reads the account's clock with one query of a partition without items. Stamps
// have milliseconds, or seconds if the server doesn't know GetCurrentTimestamp.
func (l *Ledger) Now(ctx context.Context) (store.Stamp, error) {
	return run(ctx, l, "now", "", func(ctx context.Context, c *conn) (store.Stamp, error) {
		pager := c.container.NewQueryItemsPager("SELECT VALUE GetCurrentTimestamp()", azcosmos.NewPartitionKeyString(clockPartition), c.query())
		page, err := pager.NextPage(ctx)
		if err != nil && !isStatus(err, http.StatusBadRequest) {
			return store.Stamp{}, err
		}
		// A refusal has the time as well, in seconds.
		var at time.Time
		if err == nil && len(page.Items) > 0 {
			at = timestamp(page.Items[0])
		}
		s := l.stamp(at, exchangeOf(ctx))
		if s.IsZero() {
			return store.Stamp{}, errors.Join(errors.New("the reply has no time, or two that contradict each other"), err)
		}
		return s, nil
	})
}

// timestamp reads a time in Unix milliseconds, or returns the zero time.
func timestamp(raw []byte) time.Time {
	var ms float64
	if err := json.Unmarshal(raw, &ms); err != nil || ms != math.Trunc(ms) || ms <= 0 || ms > 253402300799999 {
		return time.Time{}
	}
	return store.FromMillis(int64(ms))
}

// stamp is a reading of the account's clock: in milliseconds if the server gave that,
// else the Date of its reply, which has whole seconds and may come from a cache that
// is renewed once a second. If both are given and contradict each other, there is no
// stamp.
func (l *Ledger) stamp(at time.Time, x *exchange) store.Stamp {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := store.Stamp{Time: at, Granularity: time.Millisecond, Skew: l.skew, Server: x.host}
	switch {
	case at.IsZero() && x.date.IsZero():
		return store.Stamp{}
	case at.IsZero():
		s.Time, s.Granularity, s.MaxAge = x.date.UTC(), time.Second, time.Second
	case !x.date.IsZero() && at.Sub(x.date).Abs() > 2*l.skew+2*time.Second:
		// One of them comes from a cache, or the servers' clocks differ by more than is
		// assumed.
		return store.Stamp{}
	}
	return s
}

// written is the time at which a new item was written, by its own stamp. The stamp has
// whole seconds. Whether they are truncated or rounded isn't documented, so a second
// is allowed either way.
func (l *Ledger) written(item []byte, x *exchange) store.Stamp {
	var content struct {
		TS int64 `json:"_ts"`
	}
	if err := json.Unmarshal(item, &content); err != nil || content.TS < 1 || content.TS > 253402300799 {
		return store.Stamp{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return store.Stamp{
		Time:        time.Unix(content.TS-1, 0).UTC(),
		Granularity: time.Second,
		MaxAge:      time.Second,
		Skew:        l.skew,
		Server:      x.host,
	}
}
