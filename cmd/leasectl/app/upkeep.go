package app

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/lever"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/upkeep"
	"github.com/slotlease/slotlease/workerlease"
)

const longest = 24 * time.Hour // of a command that reads and writes much

func (a *app) backupCommand() *cobra.Command {
	timeout, to := time.Minute, ""
	c := a.onStore("backup --to FILE", "Copy a SQLite ledger, while workers use it", func(c *cobra.Command, t storeuri.Target) error {
		ctx, cancel := context.WithTimeout(c.Context(), timeout)
		defer cancel()
		return upkeep.Backup(ctx, t, to, a.shown)
	})
	option(a, c.Flags(), &to, "to", "FILE", "the file for the copy, which must not exist (required)", nonEmpty)
	require(c.Flags(), "to", "name the file for the copy, which must not exist")
	a.timeoutFlag(c.Flags(), &timeout, "how long it may take", longest)
	return c
}

func (a *app) reanchorCommand() *cobra.Command {
	o := upkeep.Options{Timeout: defaultTimeout}
	c := a.onStore("reanchor", "Take the time of a SQLite ledger from the machine's clock anew", func(c *cobra.Command, t storeuri.Target) error {
		o.Ask = a.asker(c)
		return upkeep.Reanchor(c.Context(), t, o, a.told(), a.shown)
	})
	c.Flags().BoolVar(&o.Yes, "yes", false, "show what changes, but don't ask")
	a.timeoutFlag(c.Flags(), &o.Timeout, waitTwice, time.Hour)
	return c
}

func (a *app) trimCommand() *cobra.Command {
	o := lever.Options{Timeout: time.Minute, Retention: workerlease.DefaultRetention}
	c := a.onStore("trim --worker-type TYPE", "Delete old records", func(c *cobra.Command, t storeuri.Target) error {
		o.Ask = a.asker(c)
		return lever.Trim(c.Context(), t, o, a.shown)
	})
	a.typeFlag(c.Flags(), &o.WorkerType, "")
	option(a, c.Flags(), &o.Retention, "retention", "DURATION", "how long records are kept (default 24h)", duration(workerlease.MinRetention, 100*366*24*time.Hour))
	a.jsonFlag(c.Flags(), &o.JSON, "table", "what was done")
	c.Flags().BoolVar(&o.Yes, "yes", false, "don't ask")
	a.timeoutFlag(c.Flags(), &o.Timeout, "how long it may take", longest)
	return c
}
