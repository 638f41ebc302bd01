package cosmos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// clockPartition is the partition that is queried for the time. Any would do; no
// worker type can have this name.
const clockPartition = "-clock"

// Now reads the account's clock with one query of a partition without items. Stamps
// have milliseconds, or seconds if the server doesn't know GetCurrentTimestamp. Stamp.History is the resource id of the container,
// which is looked at every 10 minutes.
func (l *Ledger) Now(ctx context.Context) (store.Stamp, error) {
	return run(ctx, l, "now", "", func(ctx context.Context, c *conn) (store.Stamp, error) {
		ctx, noted := storekit.Noting(ctx)
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
		s := l.stamp(at, noted())
		if s.IsZero() {
			return store.Stamp{}, errors.Join(errors.New("the reply has no time, or two that contradict each other"), err)
		}
		s.History, _ = l.container.Load().(string)
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
// else by the Date of its reply. If both are given and contradict each other, there is no
// stamp.
func (l *Ledger) stamp(at time.Time, dated store.Stamp) store.Stamp {
	switch {
	case at.IsZero():
		return dated
	case !dated.IsZero() && at.Sub(dated.Time).Abs() > 2*l.skew+2*time.Second:
		// One of them comes from a cache, or the servers' clocks differ by more than is
		// assumed.
		return store.Stamp{}
	}
	return store.Stamp{Time: at, Granularity: time.Millisecond, Skew: l.skew, Server: l.server(dated)}
}

// server names the server of a reply.
func (l *Ledger) server(dated store.Stamp) string { return cmp.Or(dated.Server, l.address.host) }

// written is the time at which a new item was written, by its own stamp. The stamp has
// whole seconds. Whether they are truncated or rounded isn't documented, so a second
// is allowed either way.
func (l *Ledger) written(item []byte, dated store.Stamp) store.Stamp {
	var content struct {
		TS int64 `json:"_ts"`
	}
	if err := json.Unmarshal(item, &content); err != nil || content.TS < 1 || content.TS > 253402300799 {
		return store.Stamp{}
	}
	return store.Stamp{
		Time:        time.Unix(content.TS-1, 0).UTC(),
		Granularity: time.Second,
		MaxAge:      time.Second,
		Skew:        l.skew,
		Server:      l.server(dated),
	}
}
