package cosmos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
)

var _ store.Roster = (*Ledger)(nil)

// rosterSuffix follows the name of the ledger's container in that of the roster's.
const rosterSuffix = "-roster"

// attendants is how many presences are written or removed at a time.
const attendants = 8

// roster is the roster's container. Its items are presences as they are in JSON; the partition is the worker type.
func (c *conn) roster() (*azcosmos.ContainerClient, error) {
	return c.client.NewContainer(c.ledger.address.database, c.ledger.address.container+rosterSuffix)
}

// Attend stores presences in place of those with their keys: one request for each.
func (l *Ledger) Attend(ctx context.Context, presences []store.Presence) error {
	type key struct{ workerType, id string }
	newest := map[key]int{} // Requests overtake one another.
	for i := range presences {
		if err := presences[i].Check(); err != nil {
			return fmt.Errorf("cosmos: attend: %w", err)
		}
		newest[key{presences[i].WorkerType, presences[i].ID}] = i
	}
	which := slices.Sorted(maps.Values(newest))
	_, err := run(ctx, l, "attend", "", func(ctx context.Context, c *conn) (none struct{}, err error) {
		return none, c.each(len(which), func(container *azcosmos.ContainerClient, i int) error {
			p := presences[which[i]]
			item, err := encodePresence(p)
			if err == nil {
				_, err = container.UpsertItem(ctx, azcosmos.NewPartitionKeyString(p.WorkerType), item, nil)
			}
			return l.unlessMissing(err)
		})
	})
	return err
}

// attended is the item of a presence. Labels are a list, since not all software takes all names for fields.
type attended struct {
	store.Presence

	Labels []label `json:"labels,omitempty"`
}

type label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func encodePresence(p store.Presence) ([]byte, error) {
	item := attended{Presence: p.Truncated()}
	for _, name := range slices.Sorted(maps.Keys(p.Labels)) {
		item.Labels = append(item.Labels, label{name, p.Labels[name]})
	}
	return json.Marshal(item)
}

// decodePresence reads an item, if it is one that Attend may have written.
func decodePresence(raw []byte) (store.Presence, bool) {
	var item attended
	if json.Unmarshal(raw, &item) != nil {
		return store.Presence{}, false
	}
	p := item.Presence.Truncated()
	for _, each := range item.Labels {
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[each.Name] = each.Value
	}
	return p, p.Check() == nil
}

// Leave removes presences: one request for each.
func (l *Ledger) Leave(ctx context.Context, workerType string, ids []string) error {
	if err := store.CheckWorkerType(workerType); err != nil {
		return fmt.Errorf("cosmos: leave: %w", err)
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !store.IsPresenceID(id) }) // None has such a one.
	_, err := run(ctx, l, "leave", workerType, func(ctx context.Context, c *conn) (none struct{}, err error) {
		return none, c.each(len(ids), func(container *azcosmos.ContainerClient, i int) error {
			_, err := container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(workerType), ids[i], nil)
			if isStatus(err, http.StatusNotFound) {
				return nil
			}
			return err
		})
	})
	return err
}

// Presences lists the presences of a worker type, by one query, or of all, by one through all partitions.
func (l *Ledger) Presences(ctx context.Context, workerType string) ([]store.Presence, error) {
	if workerType != "" {
		if err := store.CheckWorkerType(workerType); err != nil {
			return nil, fmt.Errorf("cosmos: presences: %w", err)
		}
	}
	return run(ctx, l, "presences", workerType, func(ctx context.Context, c *conn) ([]store.Presence, error) {
		container, err := c.roster()
		if err != nil {
			return nil, err
		}
		o, partition, text := c.query(), azcosmos.NewPartitionKey(), "SELECT * FROM c"
		if workerType != "" {
			o = c.query(azcosmos.QueryParameter{Name: "@type", Value: workerType})
			partition, text = azcosmos.NewPartitionKeyString(workerType), text+" WHERE c.workerType = @type"
		} else {
			o.EnableCrossPartitionQuery = nil
		}
		o.PageSizeHint = mostPage
		var list []store.Presence
		for pager := container.NewQueryItemsPager(text, partition, o); pager.More(); {
			page, err := pager.NextPage(ctx)
			if isStatus(err, http.StatusNotFound) {
				return nil, nil // Nobody has made the roster.
			}
			if err != nil {
				return nil, err
			}
			for _, raw := range page.Items {
				if p, ok := decodePresence(raw); ok && (workerType == "" || p.WorkerType == workerType) {
					list = append(list, p)
				}
			}
		}
		slices.SortFunc(list, store.ComparePresences)
		return list, nil
	})
}

// unlessMissing names the container that isn't there. It hides the reply, which says nothing of the ledger's.
func (l *Ledger) unlessMissing(err error) error {
	if isStatus(err, http.StatusNotFound) {
		return fmt.Errorf("%w: no container %s/%s%s for the roster: create it, as leasectl init does", store.ErrMissing, l.address.database, l.address.container, rosterSuffix)
	}
	return err
}

// each does something with n items of the roster, several at a time. After the first error it begins no more, but
// waits for what is in progress.
func (c *conn) each(n int, do func(*azcosmos.ContainerClient, int) error) error {
	container, err := c.roster()
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	failures := make(chan error, attendants)
	for range min(attendants, n) {
		wg.Go(func() {
			for i := int(next.Add(1) - 1); i < n; i = int(next.Add(1) - 1) {
				if err := do(container, i); err != nil {
					next.Store(int64(n))
					failures <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failures)
	return <-failures
}
