package mongo

import (
	"context"
	"fmt"

	"github.com/slotlease/slotlease/store"
)

// Init creates the collection if it doesn't exist, and checks that it is fit for a
// ledger. There are no indexes to create, because a ledger needs only that of _id. It
// changes nothing that exists; an unfit collection is refused with store.ErrRefused.
// It also creates the collection of the roster, unless it isn't allowed to.
func (l *Ledger) Init(ctx context.Context) error {
	_, err := run(ctx, l, "init", "", func(ctx context.Context) (none struct{}, err error) {
		if err := l.create(ctx); err != nil {
			return none, err
		}
		return none, l.createRoster(ctx)
	})
	return err
}

func (l *Ledger) create(ctx context.Context) error {
	there, err := l.inspect(ctx)
	if err != nil || there == present {
		return err
	}
	if err := l.to().db.CreateCollection(ctx, l.to().coll.Name()); err != nil && !hasCode(err, codeNamespaceExists) {
		return fmt.Errorf("create %s: %w", l.namespace(), err)
	}
	// Another process may have created it meanwhile, in another way.
	there, err = l.inspect(ctx)
	if err == nil && there == absent {
		return fmt.Errorf("%w: %s was created and is not there", store.ErrMissing, l.namespace())
	}
	return err
}
