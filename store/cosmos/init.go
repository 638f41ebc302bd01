package cosmos

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/slotlease/slotlease/store"
)

// Init creates the database and the container if they don't exist, with an index of
// only the queried fields, and checks that they are fit for a ledger. It changes
// nothing that exists; an unfit container is refused with store.ErrRefused. Creating
// needs a key, because Azure doesn't allow it with tokens. The roster's container is created
// beside the ledger's, if that is allowed.
func (l *Ledger) Init(ctx context.Context) error {
	err := l.check(ctx)
	if errors.Is(err, store.ErrMissing) {
		if err := l.create(ctx); err != nil {
			return err
		}
		// Another process may have created it, in another way.
		err = l.check(ctx)
	}
	if err != nil {
		return err
	}
	return l.createRoster(ctx)
}

// check checks account and container.
func (l *Ledger) check(ctx context.Context) error {
	_, err := runOn(ctx, l, "init", "", l.reconnected, func(context.Context, *conn) (struct{}, error) { return struct{}{}, nil })
	return err
}

// create creates what is missing. Another process may be doing the same.
func (l *Ledger) create(ctx context.Context) error {
	err := l.making(ctx, "database "+l.address.database, func(ctx context.Context, c *conn) error {
		_, err := c.client.CreateDatabase(ctx, azcosmos.DatabaseProperties{ID: l.address.database}, nil)
		return err
	})
	if err != nil {
		return err
	}
	return l.createContainer(ctx, l.address.container, l.offer)
}

// createRoster creates the roster's container, with the least throughput that Azure offers. Who may not create
// it does without: no lease depends on it.
func (l *Ledger) createRoster(ctx context.Context) error {
	there, err := run(ctx, l, "init", "", func(ctx context.Context, c *conn) (bool, error) {
		container, err := c.roster()
		if err == nil {
			_, err = container.Read(ctx, nil)
		}
		if isStatus(err, http.StatusNotFound) {
			return false, nil
		}
		return true, err
	})
	if there || err != nil {
		return unlessDenied(err)
	}
	offer := l.offer
	if offer != nil {
		least := azcosmos.NewManualThroughputProperties(DefaultThroughput)
		offer = &least
	}
	return unlessDenied(l.createContainer(ctx, l.address.container+rosterSuffix, offer))
}

func unlessDenied(err error) error {
	if errors.Is(err, store.ErrDenied) {
		return nil
	}
	return err
}

func (l *Ledger) createContainer(ctx context.Context, name string, offer *azcosmos.ThroughputProperties) error {
	return l.making(ctx, "container "+name, func(ctx context.Context, c *conn) error {
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
	})
}

// making creates something. It may be there.
func (l *Ledger) making(ctx context.Context, what string, do func(context.Context, *conn) error) error {
	c, err := l.dial()
	if err != nil {
		return l.failed(ctx, "init", "", err)
	}
	defer c.client.Close()
	defer c.end()
	_, err = runOn(ctx, l, "init", "", func(context.Context) (*conn, error) { return c, nil }, func(ctx context.Context, c *conn) (struct{}, error) {
		err := do(ctx, c)
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
	})
	return err
}
