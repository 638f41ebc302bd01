package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Init creates the database and the container if they don't exist, with an index of
// only the queried fields, and checks that they are fit for a ledger. It changes
// nothing that exists; an unfit container is refused with store.ErrRefused. Creating
// needs a key, because Azure doesn't allow it with tokens.
//
// It also creates the container of the roster, unless it isn't allowed to.
func (l *Ledger) Init(ctx context.Context) error {
	err := l.again(ctx)
	if errors.Is(err, store.ErrMissing) {
		if err := l.create(ctx); err != nil {
			return err
		}
		// Another process may have created it, in another way.
		err = l.again(ctx)
	}
	if err != nil {
		return err
	}
	return l.createRoster(ctx)
}

// again checks account and container, however recent the last check is.
func (l *Ledger) again(ctx context.Context) error {
	_, err := storekit.RunUnchecked(ctx, l.runner, "init", "", task(ctx, l, l.reconnected, func(context.Context, *conn) (none struct{}, err error) { return none, nil }))
	return err
}

// create creates what is missing. Another process may be doing the same.
func (l *Ledger) create(ctx context.Context) error {
	c, err := l.dial(ctx)
	if err != nil {
		return l.runner.Failed(ctx, "init", "", err)
	}
	defer c.client.Close()
	defer c.end()
	create := func(what string, do func(context.Context) error) error {
		_, err := storekit.RunUnchecked(ctx, l.runner, "init", "", task(ctx, l, c.itself, func(ctx context.Context, _ *conn) (struct{}, error) {
			err := do(ctx)
			switch {
			case isStatus(err, http.StatusConflict):
				err = nil
			case isStatus(err, http.StatusForbidden):
				err = fmt.Errorf("%w (a token may not: create it with the portal or az cosmosdb sql, or use a key)", err)
			}
			if err != nil {
				err = fmt.Errorf("create %s: %w", what, err)
			}
			return struct{}{}, err
		}))
		return err
	}
	err = create("database "+l.address.database, func(ctx context.Context) error {
		_, err := c.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: l.address.database}, nil)
		return err
	})
	if err != nil {
		return err
	}
	return create("container "+l.address.container, func(ctx context.Context) error {
		return l.createContainer(ctx, c, l.address.container, l.offer)
	})
}

// createContainer creates the container of a ledger or of a roster.
func (l *Ledger) createContainer(ctx context.Context, c *conn, name string, offer *azcosmos.ThroughputProperties) error {
	database, err := c.client.NewDatabase(l.address.database)
	if err != nil {
		return err
	}
	_, err = database.CreateContainer(ctx, azcosmos.ContainerProperties{
		ID:                     name,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{partitionPath}, Version: 2},
		IndexingPolicy:         indexing(),
	}, &azcosmos.CreateContainerOptions{ThroughputProperties: offer})
	return err
}
