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
