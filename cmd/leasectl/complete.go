package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
)

// completeInstance completes an instance id by the workers in the roster and by those of the newest
// records: of --worker-type, if that is given, or of all types. A shell waits for it, so that it gives
// up soon, and shows no error.
func (a *app) completeInstance(c *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const timeout = time.Second
	t := a.target(c)
	if len(a.problems) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	name := ""
	if f := c.Flags().Lookup("worker-type"); f != nil {
		name = f.Value.String()
	}
	return slices.DeleteFunc(instances(ctx, t, name), func(id string) bool { return !strings.HasPrefix(id, prefix) }), cobra.ShellCompDirectiveNoFileComp
}

// instances are the ids of workers that a store knows of, in order. Shells obey what they are given as a
// completion: only plain words are.
func instances(ctx context.Context, t storeuri.Target, workerType string) (ids []string) {
	const newest = 40 // records of each type
	l, err := t.Open(ctx, true)
	if err != nil {
		return nil
	}
	defer func() { _ = storeuri.Close(ctx, l) }() // it was only read
	names := []string{workerType}
	if workerType == "" {
		types, _ := inspect.TypesIn(ctx, l)
		names = types.Valid
	}
	if roster, ok := l.(store.Roster); ok {
		all, _ := roster.Presences(ctx, workerType)
		for _, p := range all {
			ids = append(ids, p.InstanceID)
		}
	}
	for _, name := range names {
		records, _, err := l.Tail(ctx, name, newest)
		if err != nil {
			break
		}
		for _, r := range records {
			ids = append(ids, r.InstanceID)
		}
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !plainWord(id) })
	slices.Sort(ids)
	return slices.Compact(ids)
}

// plainWord reports that a text means itself to every shell.
func plainWord(text string) bool {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-@"
	return text != "" && text[0] != '-' && strings.Trim(text, plain) == ""
}
