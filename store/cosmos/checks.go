package cosmos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
	"github.com/slotlease/slotlease/store/storekit"
)

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
	c, err := l.dial(ctx)
	if err != nil {
		return nil, l.runner.Failed(ctx, "examine", "", err)
	}
	c.examines = true
	defer c.client.Close()
	defer c.end()
	x := &exam{conn: c}
	table := storekit.Checks{Rows: slices.Concat(x.service(), x.properties(), x.rights()), Runner: l.runner, Clock: l.clock}
	return table.Examine(ctx)
}

// exam is an examination by a connection of its own. A row that has run out of time may still be asking beside the next one.
type exam struct {
	*conn

	found atomic.Pointer[azcosmos.ContainerProperties]
	head  atomic.Pointer[store.Record]
}

// ask is what a row asks, again while the account throttles.
func (x *exam) ask(sound string, do func(ctx context.Context) error) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return task(ctx, x.ledger, x.itself, func(ctx context.Context, _ *conn) (string, error) { return sound, do(ctx) })(ctx)
	}
}

// service are the rows of the account, and of how it is reached. The SDK reads the account's properties before the container's.
func (x *exam) service() []storekit.Check {
	l := x.ledger
	var denied atomic.Pointer[error] // of the container's properties
	look := x.ask("the account "+l.address.host+" answered, twice", func(ctx context.Context) error {
		reply, err := x.container.Read(ctx, nil)
		if x.account.Load() == nil && err != nil {
			return err
		}
		x.found.Store(reply.ContainerProperties)
		denied.Store(&err)
		return nil
	})
	unread := store.LevelFail
	if l.unsafe {
		unread = store.LevelWarn // Operations do without these properties.
	}
	return []storekit.Check{
		{Name: store.CheckConnection, Level: store.LevelFail, Needed: "no connection", Ask: look},
		{Name: store.CheckTLS, Alone: true, Ask: l.secured},
		storekit.Assumed(l.skew, "front ends can't be asked one by one"),
		{Name: CheckRegions, Level: store.LevelWarn, Ask: x.judged(func(a Account) (string, error) {
			if refused := l.judge(a); refused != nil {
				return "", refused
			}
			return found("writes in one region: "+strings.Join(a.WriteRegions, ", "), CheckRegions, a.flaws())
		})},
		{Name: CheckConsistency, Level: store.LevelWarn, Ask: x.judged(func(a Account) (string, error) {
			return found(a.Consistency+" by default", CheckConsistency, a.flaws())
		})},
		{Name: store.CheckLedger, Level: unread, Needed: "there is no container whose properties can be read", Ask: func(context.Context) (string, error) {
			err := *denied.Load()
			name := l.address.database + "/" + l.address.container
			switch {
			case isStatus(err, http.StatusNotFound):
				return "", storekit.Flaws{{Check: store.CheckLedger, Level: store.LevelFail, What: "there is no container " + name, Remedy: "leasectl init"}}
			case err == nil && x.found.Load() == nil:
				return "", errors.New("the container's properties are missing in the reply")
			}
			return "the container " + name + " is there", explain(err)
		}},
	}
}

// secured says how the connection is secured.
func (l *Ledger) secured(context.Context) (string, error) {
	switch {
	case l.address.plain:
		return "not encrypted (insecureHTTP), to this machine alone", nil
	case l.address.skipVerify:
		return "encrypted, and the certificate isn't verified (insecureSkipVerify), to this machine alone", nil
	case l.own == nil:
		return "", storekit.Skip("the transport is the caller's")
	}
	return "encrypted, and the server's certificate is verified", nil
}

// judged is what a row asks of the account's properties.
func (x *exam) judged(by func(a Account) (string, error)) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		if a := x.account.Load(); a != nil {
			return by(*a)
		}
		return "", storekit.Skip("the account's properties are unknown")
	}
}

// properties are the rows of the container's properties, on which operations depend, too.
func (x *exam) properties() (rows []storekit.Check) {
	for _, p := range []struct{ check, sound string }{
		{CheckPartitionKey, partitionPath},
		{store.CheckExpiry, "no default time to live: nothing expires"},
		{store.CheckConstraints, "no unique keys but the id"},
		{CheckIndexing, "consistent"},
	} {
		rows = append(rows, storekit.Check{Name: p.check, Level: store.LevelFail, Ask: func(context.Context) (string, error) {
			return found(p.sound, p.check, x.ledger.containerFlaws(x.found.Load()))
		}})
	}
	return rows
}

// found is what a check says: those of the flaws that are its own, or what is sound.
func found(sound, check string, flaws []storekit.Flaw) (string, error) {
	return storekit.Found(sound, slices.DeleteFunc(flaws, func(f storekit.Flaw) bool { return f.Check != check })...)
}

// rights are the rows of what workers do, tried so that nothing is stored.
func (x *exam) rights() []storekit.Check {
	grant := func(actions string) string {
		return "grant Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/" + actions +
			", or the role Cosmos DB Built-in Data Contributor, on the database or the account; or use a key that may write"
	}
	again := x.ask("granted, by an append of a key that exists", func(ctx context.Context) error { return x.appendAgain(ctx, *x.head.Load()) })
	return []storekit.Check{
		{Name: store.CheckRead, Level: store.LevelFail, Grant: grant("executeQuery and items/read"), Ask: x.ask("queries are granted", func(ctx context.Context) error {
			head, err := x.anyHead(ctx)
			x.head.Store(&head)
			return err
		})},
		{Name: store.CheckAppend, Level: store.LevelFail, Grant: grant("items/create"), Ask: func(ctx context.Context) (string, error) {
			head := x.head.Load()
			if head == nil || head.WorkerType == "" || x.ledger.judgeContainer(x.found.Load()) != nil {
				return "", storekit.Skip("it is tried by the key of a record, and there is none that can be used")
			}
			return again(ctx)
		}},
		{Name: store.CheckTrim, Level: store.LevelWarn, Grant: grant("items/delete"), Ask: x.ask("granted, by the deletion of what isn't there", func(ctx context.Context) error {
			_, err := x.container.DeleteItem(ctx, azcosmos.NewPartitionKeyString(clockPartition), "-none", nil)
			if isStatus(err, http.StatusNotFound) {
				err = nil
			}
			return err
		})},
		{Name: store.CheckRoster, Level: store.LevelWarn, Grant: grant("items/*"), Ask: x.ask("reading and deleting are granted", func(ctx context.Context) error {
			err := x.onRosterMay(ctx)
			if isStatus(err, http.StatusNotFound) {
				what := fmt.Sprintf("there is no container %s/%s%s", x.ledger.address.database, x.ledger.address.container, rosterSuffix)
				return storekit.Flaws{{Check: store.CheckRoster, What: what, Remedy: "leasectl init"}}
			}
			return err
		})},
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
