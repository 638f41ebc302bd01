package app

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

// defaultTimeout bounds what one command asks of a store.
const defaultTimeout = 10 * time.Second

func (a *app) initCommand() *cobra.Command {
	timeout := defaultTimeout
	c := &cobra.Command{
		Use:   "init",
		Short: "Create what the store needs; safe to repeat",
		Long: `Create what the store needs: the file and its tables (sqlite), the tables in a
database that is there (postgres, mysql), the collection (mongodb), the database and the
container (cosmos), the bucket (s3), the container (azblob) or the namespace (k8s). Others
need nothing; then it tries whether the store can be used. It changes nothing that exists,
so it is safe to repeat.

A container in Cosmos DB gets 400 RU/s by default. Parameters of the URI change that:
?throughput=1000, ?autoscale=1000 (at most) or ?serverless=true.`,
		Example: `  leasectl init --store sqlite:leases.db
  LEASECTL_STORE=postgres://USER:PASSWORD@HOST/DATABASE leasectl init`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := a.awaited(c)
			if err := a.usage(c); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			return advice.ForStore(t, a.init(ctx, t))
		},
	}
	option(a, c.Flags(), &timeout, "timeout", "duration", "how long to wait for the store (default 10s)", duration(time.Millisecond, time.Hour))
	return c
}

// init creates the parts of the ledger that are missing.
func (a *app) init(ctx context.Context, t storeuri.Target) (err error) {
	before, err := t.Open(ctx, true)
	missing := errors.Is(err, store.ErrMissing)
	if err != nil && !missing {
		return err
	}
	var types inspect.Types
	if before != nil {
		types, err = inspect.TypesIn(ctx, before)
		missing = errors.Is(err, store.ErrMissing)
		closeErr := storeuri.Close(ctx, before)
		if err != nil && !missing || closeErr != nil {
			return errors.Join(err, closeErr)
		}
	}
	ledger, err := t.Open(ctx, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storeuri.Close(ctx, ledger)) }()
	if err := ledger.Init(ctx); err != nil {
		return err
	}
	if text := storeuri.Warning(ledger); text != "" {
		a.errorf("leasectl: warning: %s\n", display.Line(a.scrub(text)))
	}
	place := display.Flat(t.Place())
	switch {
	case missing:
		a.printf("created the ledger %s%s\n", place, t.Provision())
	case !types.None():
		a.printf("the ledger %s was there already, with the worker types %s\n", place, types)
	case t.Scheme == "sqlite", t.Scheme == "cosmos":
		a.printf("the ledger %s was there already, without records\n", place)
	default:
		a.printf("the ledger %s is ready, without records\n", place)
	}
	return nil
}
