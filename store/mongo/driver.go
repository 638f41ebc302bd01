package mongo

import (
	"context"

	"github.com/slotlease/slotlease/store"
)

func init() {
	for _, scheme := range []string{"mongodb", "mongodb+srv"} {
		store.Register(scheme, store.Driver{
			Open: func(ctx context.Context, uri string, o store.OpenOptions) (store.Ledger, error) {
				l, err := Open(ctx, Options{URI: uri, AppName: o.AppName, Clock: o.Clock})
				if err != nil {
					return nil, err
				}
				return l, nil
			},
			Redact: Redact,
			Form:   scheme + "://HOST/DATABASE?collection=NAME",
		})
	}
}

var _ store.Described = (*Ledger)(nil)

// Describe says what the ledger knows of its store. See [store.Described].
func (l *Ledger) Describe() store.Description {
	return store.Description{
		Durability: l.Durability, Warning: l.Warning, Note: l.Note, InitScript: l.InitScript, CheckRights: l.CheckRights, Examine: l.Examine,
	}
}

// Durability says what write concern majority with journal means.
func (l *Ledger) Durability() store.Durability {
	return store.Durability{
		Crash:    "All survive: an append is acknowledged when a majority of the members, or a standalone server, has it in the journal.",
		Power:    "All survive, if disks keep what they were told to sync: the journals were synced first. Services that speak the protocol promise this themselves.",
		Failover: "All survive: only a member that has them can be elected. A standalone server has no copy.",
	}
}
