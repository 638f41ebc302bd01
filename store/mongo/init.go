package mongo

import (
	"context"
	"fmt"
	"strconv"

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

// InitScript returns what Init does as commands for mongosh, and a role with the rights of a worker, to be granted to its user.
func (l *Ledger) InitScript() string {
	db, ledger := strconv.Quote(l.to().db.Name()), l.to().coll.Name()
	roster := ledger + rosterSuffix
	text := "// for mongosh\nledgers = db.getSiblingDB(" + db + ");\n"
	for _, name := range []string{ledger, roster} {
		text += fmt.Sprintf("if (!ledgers.getCollectionNames().includes(%[1]q)) ledgers.createCollection(%[1]q);\n", name)
	}
	text += "// The rights of a worker: grant the role to its user by ledgers.grantRolesToUser. readWrite has them, too.\n" +
		"// With a sharded collection it also needs find on config.collections, which only a role of admin can have.\n" +
		"ledgers.createRole({ role: " + strconv.Quote(ledger+"_worker") + ", roles: [], privileges: [\n"
	for _, p := range []struct{ name, actions string }{
		{ledger, `"find", "insert", "remove", "listIndexes", "collStats", "changeStream"`},
		{roster, `"find", "insert", "update", "remove"`},
		{"", `"listCollections"`},
		{clockCollection, `"collStats"`},
	} {
		text += fmt.Sprintf("  { resource: { db: %s, collection: %q }, actions: [%s] },\n", db, p.name, p.actions)
	}
	return text + "] });\n"
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
