package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/internal/fault"
	"github.com/slotlease/slotlease/store/storekit"
)

var _ store.Examiner = (*Ledger)(nil)

// The checks of this store alone.
const (
	// CheckRegions: one region takes writes, and a failover loses none.
	CheckRegions = "regions"
	// CheckConsistency: reads aren't stale.
	CheckConsistency = "consistency"
	// CheckPartitionKey: the records of a worker type are in one partition.
	CheckPartitionKey = "partition-key"
	// CheckIndexing: queries find all that was written.
	CheckIndexing = "indexing"
)

// Examine asks for the properties of account and container, and tries the rights of the key or identity: by an
// append of the newest record's key, which exists, and by the deletion of what doesn't. It stores nothing.
// It costs about 30 request units.
func (l *Ledger) Examine(ctx context.Context) ([]store.Finding, error) {
	if err := l.runner.Open(ctx); err != nil {
		return nil, l.runner.Failed(ctx, "examine", "", err)
	}
	c, err := l.dial()
	if err != nil {
		return nil, l.runner.Failed(ctx, "examine", "", err)
	}
	c.examines = true
	defer c.client.Close()
	defer c.end()
	e := &storekit.Exam{Clock: l.clock, Scrub: func(text string) string { return l.secrets.Scrub(text) }}
	p, err := l.examineConnection(ctx, e, c)
	l.examineTLS(e)
	e.OK(store.CheckServerClocks, fmt.Sprintf("apart by %v at most, as is assumed (serverSkew): front ends can't be asked one by one", l.skew))
	a := c.account.Load()
	if a == nil {
		e.Skip("the account's properties are unknown", CheckRegions, CheckConsistency)
	} else {
		l.examineAccount(e, *a)
	}
	l.examineContainer(e, p, err)
	if p == nil {
		e.Skip("the container can't be used", store.CheckAppend, store.CheckRead, store.CheckTrim, store.CheckRoster)
		return e.Found, nil
	}
	l.examineRights(ctx, e, c, len(l.containerFlaws(p)) > 0)
	return e.Found, nil
}

// probe makes a part of an examination.
func probe[T any](ctx context.Context, l *Ledger, c *conn, do func(ctx context.Context) (T, error)) (T, error) {
	return storekit.Probe(ctx, l.runner, task(ctx, l, c.itself, func(ctx context.Context, _ *conn) (T, error) { return do(ctx) }))
}

// examineConnection reads the container's properties, for which the SDK reads those of the account first.
func (l *Ledger) examineConnection(ctx context.Context, e *storekit.Exam, c *conn) (*azcosmos.ContainerProperties, error) {
	ctx, cancel := e.First(ctx)
	defer cancel()
	began := l.clock.Now()
	p, err := probe(ctx, l, c, func(ctx context.Context) (*azcosmos.ContainerProperties, error) {
		reply, err := c.container.Read(ctx, nil)
		return reply.ContainerProperties, err
	})
	if err == nil && p == nil {
		err = errors.New("the container's properties are missing in the reply")
	}
	if c.account.Load() == nil && err != nil {
		e.Failed(store.CheckConnection, store.LevelFail, err)
		return nil, err
	}
	e.OK(store.CheckConnection, fmt.Sprintf("the account %s answered, twice in %v", l.address.host, e.Since(began)))
	return p, err
}

// examineTLS says how the connection is secured.
func (l *Ledger) examineTLS(e *storekit.Exam) {
	switch {
	case l.address.plain:
		e.OK(store.CheckTLS, "not encrypted (insecureHTTP), to this machine alone")
	case l.address.skipVerify:
		e.OK(store.CheckTLS, "encrypted, and the certificate isn't verified (insecureSkipVerify), to this machine alone")
	case l.own == nil:
		e.Skip("the transport is the caller's", store.CheckTLS)
	default:
		e.OK(store.CheckTLS, "encrypted, and the server's certificate is verified")
	}
}

// examineAccount judges the account's properties.
func (l *Ledger) examineAccount(e *storekit.Exam, a Account) {
	flaws := a.flaws()
	if refused := l.judge(a); refused != nil {
		e.Failed(CheckRegions, store.LevelFail, refused)
	} else {
		of := func(check string) (what, remedy []string) {
			for _, f := range flaws {
				if f.Check == check {
					what, remedy = append(what, f.What), append(remedy, f.Remedy)
				}
			}
			return what, remedy
		}
		if what, remedies := of(CheckRegions); len(what) > 0 {
			remedy := strings.Trim(strings.Join(remedies, "; "), "; ")
			if remedy == "" && len(a.ReadRegions) > 1 {
				remedy = "make Strong the account's default consistency"
			}
			e.Add(storekit.Flaw{Check: CheckRegions, What: strings.Join(what, "; "), Remedy: remedy}.Finding(store.LevelWarn))
		} else {
			e.OK(CheckRegions, "writes in one region: "+strings.Join(a.WriteRegions, ", "))
		}
	}
	e.Flaws(CheckConsistency, store.LevelWarn, flaws, a.Consistency+" by default")
}

// examineContainer judges the container's properties, or why there are none.
func (l *Ledger) examineContainer(e *storekit.Exam, p *azcosmos.ContainerProperties, err error) {
	checks := []string{CheckPartitionKey, store.CheckExpiry, store.CheckConstraints, CheckIndexing}
	name := l.address.database + "/" + l.address.container
	switch {
	case p == nil && isStatus(err, http.StatusNotFound):
		e.Add(storekit.Flaw{Check: store.CheckLedger, What: "there is no container " + name, Remedy: "leasectl init"}.Finding(store.LevelFail))
		e.Skip("there is none", checks...)
		return
	case p == nil && errors.Is(err, store.ErrDenied):
		e.Failed(store.CheckLedger, map[bool]store.Level{true: store.LevelWarn, false: store.LevelFail}[l.unsafe], err)
		e.Skip("no right to read the container's properties", checks...)
		return
	case p == nil:
		e.Skip("no connection", append(checks, store.CheckLedger)...)
		return
	}
	e.OK(store.CheckLedger, "the container "+name+" is there")
	flaws := l.containerFlaws(p)
	e.Flaws(CheckPartitionKey, store.LevelFail, flaws, partitionPath)
	e.Flaws(store.CheckExpiry, store.LevelFail, flaws, "no default time to live: nothing expires")
	e.Flaws(store.CheckConstraints, store.LevelFail, flaws, "no unique keys but the id")
	e.Flaws(CheckIndexing, store.LevelFail, flaws, "consistent")
}

// examineRights tries what workers do, so that nothing is stored.
func (l *Ledger) examineRights(ctx context.Context, e *storekit.Exam, c *conn, unfit bool) {
	ctx, cancel := e.Part(ctx)
	defer cancel()
	judge := func(check string, level store.Level, err error, granted, remedy string) {
		switch {
		case err == nil:
			e.OK(check, granted)
		case errors.Is(err, store.ErrDenied):
			f := fault.Failed(check, level, err)
			f.Remedy = remedy + ", or the role Cosmos DB Built-in Data Contributor, on the database or the account; or use a key that may write"
			e.Add(f)
		default:
			e.Failed(check, level, err)
		}
	}
	const items = "grant Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/"
	head, err := probe(ctx, l, c, func(ctx context.Context) (store.Record, error) { return c.anyHead(ctx) })
	judge(store.CheckRead, store.LevelFail, err, "queries are granted", items+"executeQuery and items/read")
	if err == nil && head.WorkerType != "" && !unfit {
		_, err := probe(ctx, l, c, func(ctx context.Context) (none struct{}, err error) { return none, c.appendAgain(ctx, head) })
		judge(store.CheckAppend, store.LevelFail, err, "granted, by an append of a key that exists", items+"items/create")
	} else {
		e.Skip("it is tried by the key of a record, and there is none that can be used", store.CheckAppend)
	}
	_, err = probe(ctx, l, c, func(ctx context.Context) (none struct{}, err error) {
		_, err = c.container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(clockPartition), "-none", nil)
		if isStatus(err, http.StatusNotFound) {
			err = nil
		}
		return none, err
	})
	judge(store.CheckTrim, store.LevelWarn, err, "granted, by the deletion of what isn't there", items+"items/delete")
	_, err = probe(ctx, l, c, func(ctx context.Context) (none struct{}, err error) { return none, c.onRosterMay(ctx) })
	switch {
	case isStatus(err, http.StatusNotFound):
		e.Add(storekit.Flaw{Check: store.CheckRoster, What: fmt.Sprintf("there is no container %s/%s%s", l.address.database, l.address.container, rosterSuffix), Remedy: "leasectl init"}.Finding(store.LevelWarn))
	default:
		judge(store.CheckRoster, store.LevelWarn, err, "reading and deleting are granted", items+"items/*")
	}
}

// anyHead is the newest record of any worker type; the zero Record if there is none.
func (c *conn) anyHead(ctx context.Context) (store.Record, error) {
	types, err := c.moreTypes(ctx, []string{})
	if err != nil || len(types) == 0 {
		return store.Record{}, err
	}
	found, err := c.walk(ctx, document.Query{WorkerType: types[0], NewestFirst: true, Limit: 1})
	if err != nil || len(found.records) == 0 {
		return store.Record{}, err
	}
	return found.records[0], nil
}

// appendAgain tries to append the key of the newest record, which nobody deletes. It is an error if that isn't a
// conflict: should the container just have been made anew, what was stored is removed.
func (c *conn) appendAgain(ctx context.Context, head store.Record) error {
	item, err := json.Marshal(map[string]any{"id": store.Key(head.WorkerType, head.Seq), document.WorkerType: head.WorkerType})
	if err != nil {
		return err
	}
	partition := azcosmos.NewPartitionKeyString(head.WorkerType)
	_, err = c.container.CreateItem(ctx, partition, item, nil)
	switch {
	case isStatus(err, http.StatusConflict):
		return nil
	case err == nil:
		_, err = c.container.DeleteItem(ctx, partition, store.Key(head.WorkerType, head.Seq), nil)
		return errors.Join(errors.New("the newest record was removed meanwhile"), err)
	}
	return err
}

// onRosterMay queries the roster, and deletes what isn't there. A 404 says that there is no roster.
func (c *conn) onRosterMay(ctx context.Context) error {
	pager := c.roster.NewQueryItemsPager("SELECT * FROM c WHERE c."+document.WorkerType+" = @type", azcosmos.NewPartitionKeyString(clockPartition),
		c.query(azcosmos.QueryParameter{Name: "@type", Value: clockPartition}))
	if _, err := pager.NextPage(ctx); err != nil {
		return err
	}
	_, err := c.roster.DeleteItem(ctx, azcosmos.NewPartitionKeyString(clockPartition), "-none", nil)
	if isStatus(err, http.StatusNotFound) && !ownerMissing(err) {
		err = nil
	}
	return err
}
