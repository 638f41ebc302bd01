package cosmos

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Roster = (*Ledger)(nil)

// rosterSuffix follows the name of the ledger's container in that of the roster's.
const rosterSuffix = "-roster"

// Attend stores presences in place of those with their keys, several at a time. Each costs one upsert.
func (l *Ledger) Attend(ctx context.Context, presences []store.Presence) error {
	items, err := storekit.EncodePresences(presences)
	if err != nil {
		return l.runner.Invalid("attend", err)
	}
	return l.eachOnRoster(ctx, "attend", "", len(items), func(ctx context.Context, c *conn, i int) error {
		_, err := c.roster.UpsertItem(ctx, azcosmos.NewPartitionKeyString(presences[i].WorkerType), items[i], nil)
		if isStatus(err, http.StatusNotFound) {
			err = fmt.Errorf("%w: no container %s/%s%s: create it, as leasectl init does: %w", store.ErrMissing, l.address.database, l.address.container, rosterSuffix, err)
		}
		return err
	})
}

// Leave removes presences, several at a time. Each deletion costs one request.
func (l *Ledger) Leave(ctx context.Context, workerType string, ids []string) error {
	if err := store.CheckWorkerType(workerType); err != nil {
		return l.runner.Invalid("leave", err)
	}
	// What isn't an ID may not be sent as part of a URL.
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !store.IsPresenceID(id) })
	return l.eachOnRoster(ctx, "leave", workerType, len(ids), func(ctx context.Context, c *conn, i int) error {
		_, err := c.roster.DeleteItem(ctx, azcosmos.NewPartitionKeyString(workerType), storekit.PresenceKey(workerType, ids[i]), nil)
		if absent(err) {
			return nil
		}
		return err
	})
}

// Presences lists the presences of a worker type, by a query of its partition, or of all, by a query across
// partitions.
func (l *Ledger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, l.runner.Invalid("presences", err)
		}
	}
	return run(ctx, l, "presences", workerType, func(ctx context.Context, c *conn) (all []store.Presence, err error) {
		text, partition, o := "SELECT * FROM c", azcosmos.NewPartitionKey(), c.query()
		if workerType == "" {
			o.EnableCrossPartitionQuery = nil
		} else {
			text, partition = text+" WHERE c."+document.WorkerType+" = @type", azcosmos.NewPartitionKeyString(workerType)
			o.QueryParameters = []azcosmos.QueryParameter{{Name: "@type", Value: workerType}}
		}
		for pager := c.roster.NewQueryItemsPager(text, partition, o); pager.More(); {
			page, err := pager.NextPage(ctx)
			switch {
			case absent(err):
				return nil, nil
			case err != nil:
				return nil, aside(err)
			}
			for _, raw := range page.Items {
				if p, ok := storekit.DecodePresence(raw); ok {
					all = append(all, p)
				}
			}
		}
		slices.SortFunc(all, store.ComparePresences)
		return all, nil
	})
}

// eachOnRoster does something for each of n presences. What was done isn't repeated after a wait for
// throttling.
func (l *Ledger) eachOnRoster(ctx context.Context, op, key string, n int, do func(ctx context.Context, c *conn, i int) error) error {
	done := make([]atomic.Bool, n)
	_, err := run(ctx, l, op, key, func(ctx context.Context, c *conn) (struct{}, error) {
		return struct{}{}, storekit.Several(n, func(i int) error {
			if done[i].Load() {
				return nil
			}
			err := do(ctx, c, i)
			done[i].Store(err == nil)
			return aside(err)
		})
	})
	return err
}

// absent reports whether a reply says that an item, or its container, isn't there. A region that lags
// doesn't know.
func absent(err error) bool {
	return isStatus(err, http.StatusNotFound) && replyOf(err).Header.Get(headerSubstatus) != substatusSessionNotAvailable
}

// asideError is an error of the roster that says nothing about the ledger: its container is missing, or
// we may not use it.
type asideError struct{ error }

func (e asideError) Unwrap() error { return e.error }

// aside marks an error as one that says nothing about the ledger, if it is one.
func aside(err error) error {
	if absent(err) || isStatus(err, http.StatusForbidden) && sentinel(err) != nil {
		return asideError{err}
	}
	return err
}

// createRoster creates the container, unless we aren't allowed to. It gets no throughput of its own, so that
// it shares the database's, if that has some, and else has the least that Azure gives.
func (l *Ledger) createRoster(ctx context.Context) error {
	_, err := run(ctx, l, "init", "", func(ctx context.Context, c *conn) (struct{}, error) {
		err := l.createContainer(ctx, c, l.address.container+rosterSuffix, nil)
		if isStatus(err, http.StatusConflict) || isStatus(err, http.StatusForbidden) && sentinel(err) != nil {
			err = nil
		}
		if err != nil {
			err = fmt.Errorf("create container %s%s: %w", l.address.container, rosterSuffix, err)
		}
		return struct{}{}, err
	})
	return err
}
