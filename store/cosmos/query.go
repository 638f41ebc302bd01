package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

const (
	// listPage is how many items are read at a time if there is no limit, and
	// mostPage if there is.
	listPage, mostPage = 100, 1000
	// fieldTime is the name of the account's time in the result of a query.
	fieldTime = "storeTime"
)

// fieldID is the name of the key. The other names are those of package document.
const fieldID = "id"

// projection asks for the fields that decode reads. Names are quoted since some
// are words of the query language.
var projection = func() string {
	quoted := []string{`c["` + fieldID + `"]`}
	for _, name := range document.Fields() {
		quoted = append(quoted, `c["`+name+`"]`)
	}
	return strings.Join(quoted, ", ")
}()

// query are the options of queries: in one partition, read as strongly as allowed.
func (c *conn) query(parameters ...azcosmos.QueryParameter) *azcosmos.QueryOptions {
	one := false
	return &azcosmos.QueryOptions{
		ConsistencyLevel:               c.consistency(),
		EnableCrossPartitionQuery:      &one,
		PageSizeHint:                   listPage,
		DedicatedGatewayRequestOptions: uncached(),
		QueryParameters:                parameters,
	}
}

// uncached asks a dedicated gateway not to answer from its cache, whose records and
// clock are minutes old.
func uncached() *azcosmos.DedicatedGatewayRequestOptions {
	return &azcosmos.DedicatedGatewayRequestOptions{BypassIntegratedCache: true}
}

// text is the query. Its values are parameters. It also names the partition, because
// some servers ignore the header.
func text(q document.Query, ids document.IDs, fields string, limit int) (string, []azcosmos.QueryParameter) {
	var b strings.Builder
	b.WriteString("SELECT ")
	if limit > 0 {
		fmt.Fprintf(&b, "TOP %d ", min(limit, math.MaxInt32))
	}
	b.WriteString(fields + " FROM c WHERE c." + document.WorkerType + " = @type")
	parameters := []azcosmos.QueryParameter{{Name: "@type", Value: q.WorkerType}}
	if ids.Below != "" {
		b.WriteString(" AND c.id >= @from AND c.id < @below")
		parameters = append(parameters, azcosmos.QueryParameter{Name: "@from", Value: ids.From}, azcosmos.QueryParameter{Name: "@below", Value: ids.Below})
	}
	b.WriteString(" ORDER BY c.id")
	if q.NewestFirst {
		b.WriteString(" DESC")
	}
	return b.String(), parameters
}

// walked is the result of a walk.
type walked struct {
	records []store.Record
	// unreachable is an unreachable id, if there is one.
	unreachable string
	// time is the account's, if the reply had it, and stamp what Tail makes of it.
	time  time.Time
	stamp store.Stamp
}

// walk reads the records of a query, and reports an unreachable id if it meets one.
func (c *conn) walk(ctx context.Context, q document.Query) (found walked, err error) {
	find := func(ids document.IDs, limit int, visit func(id string, raw []byte) bool) error {
		at, err := c.find(ctx, q, ids, limit, visit)
		if found.time.IsZero() {
			found.time = at
		}
		return err
	}
	found.records, found.unreachable, err = document.Walk(q, find, storekit.Decode)
	return found, err
}

// find visits the items of a query until visit returns false, and returns the
// account's time, if there is one. A server that doesn't know the function for it is
// asked again without it, and from then on without it on this connection.
func (c *conn) find(ctx context.Context, q document.Query, ids document.IDs, limit int, visit func(id string, raw []byte) bool) (time.Time, error) {
	fields := projection
	if q.Keys {
		fields = "c.id"
	}
	if !c.timeless.Load() && !q.Keys {
		visited := false
		at, err := c.pages(ctx, q, ids, fields+", GetCurrentTimestamp() AS "+fieldTime, limit, func(id string, raw []byte) bool {
			visited = true
			return visit(id, raw)
		})
		// The items visited so far would be visited twice.
		if visited || !isStatus(err, http.StatusBadRequest) {
			return at, err
		}
		c.timeless.Store(true)
	}
	return c.pages(ctx, q, ids, fields, limit, visit)
}

// pages reads the pages of one query.
func (c *conn) pages(ctx context.Context, q document.Query, ids document.IDs, fields string, limit int, visit func(id string, raw []byte) bool) (at time.Time, err error) {
	text, parameters := text(q, ids, fields, limit)
	o := c.query(parameters...)
	o.PageSizeHint = int32(max(listPage, min(limit, mostPage)))
	pager := c.container.NewQueryItemsPager(text, azcosmos.NewPartitionKeyString(q.WorkerType), o)
	for visited := 0; pager.More() && (limit == 0 || visited < limit); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return at, err
		}
		visited += len(page.Items)
		for _, raw := range page.Items {
			var head struct {
				ID   *string         `json:"id"`
				Time json.RawMessage `json:"storeTime"`
			}
			if err := json.Unmarshal(raw, &head); err != nil || head.ID == nil {
				return at, errors.New("the server sent an item without an id")
			}
			if t := timestamp(head.Time); t.After(at) {
				at = t
			}
			if !visit(*head.ID, raw) {
				return at, nil
			}
		}
	}
	return at, nil
}

// trim deletes the oldest records below a Seq, and counts them.
func (c *conn) trim(ctx context.Context, workerType string, before int64, deleted *atomic.Int64) error {
	old, err := document.Trimmable(workerType, before, store.TrimBatch-int(deleted.Load()), func(q document.Query) ([]store.Record, error) {
		found, err := c.walk(ctx, q)
		return found.records, err
	})
	if err != nil {
		return err
	}
	return c.remove(ctx, old, deleted)
}

// remove deletes records, the oldest first and then several at a time.
func (c *conn) remove(ctx context.Context, records []store.Record, deleted *atomic.Int64) error {
	return storekit.OldestFirst(len(records), func(i int) error {
		r := records[i]
		_, err := c.container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(r.WorkerType), store.Key(r.WorkerType, r.Seq), nil)
		switch {
		case err == nil:
			deleted.Add(1)
		case isStatus(err, http.StatusNotFound) && !ownerMissing(err):
			// Another worker trims, too.
		default:
			return err
		}
		return nil
	})
}

// workerTypes finds the worker types that have records. Queries across partitions
// support neither DISTINCT nor an order here, so it queries for items of other types
// than those seen, until there are none.
func (c *conn) workerTypes(ctx context.Context) ([]string, error) {
	types := []string{}
	for {
		more, err := c.moreTypes(ctx, types)
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			slices.Sort(types)
			return types, nil
		}
		types = append(types, more...)
	}
}

// moreTypes finds some worker types that have records and weren't seen; none if there are no more.
func (c *conn) moreTypes(ctx context.Context, seen []string) (types []string, err error) {
	o := c.query(azcosmos.QueryParameter{Name: "@seen", Value: seen})
	o.EnableCrossPartitionQuery = nil
	pager := c.container.NewQueryItemsPager("SELECT c.id, c."+document.WorkerType+" FROM c WHERE NOT ARRAY_CONTAINS(@seen, c."+document.WorkerType+")", azcosmos.NewPartitionKey(), o)
	for pager.More() && len(types) == 0 {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, raw := range page.Items {
			var item struct {
				ID         string `json:"id"`
				WorkerType string `json:"workerType"`
			}
			// Partitions whose name isn't text contain no ledger.
			if json.Unmarshal(raw, &item) != nil {
				continue
			}
			if _, ok := document.SeqOf(item.WorkerType, item.ID); ok && !slices.Contains(types, item.WorkerType) && store.CheckWorkerType(item.WorkerType) == nil {
				types = append(types, item.WorkerType)
			}
		}
	}
	return types, nil
}
