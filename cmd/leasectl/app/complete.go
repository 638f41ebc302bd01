package app

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

// completionWait bounds a completion, since a shell, and who types there, waits for it. Tests wait longer: on a
// busy machine they would get some of the words.
var completionWait = time.Second

// completeInstance completes an instance id by the workers in the roster and by those of the newest
// records: of --worker-type, if that is given, or of all types.
func (a *app) completeInstance(c *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const newest = 40 // records of each type
	return a.completeWord(c, prefix, newest, func(p store.Presence) string { return p.InstanceID }, func(r store.Record) []string { return []string{r.InstanceID} })
}

// completeHost completes a host by the workers in the roster, and by the drains that the newest records name.
func (a *app) completeHost(c *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	drained := func(r store.Record) (hosts []string) {
		orders, _ := store.ParseOrders(r.Orders)
		for _, o := range orders {
			if o.Kind == store.OrderDrain {
				hosts = append(hosts, o.Target)
			}
		}
		return hosts
	}
	return a.completeWord(c, prefix, 1, func(p store.Presence) string { return p.Host }, drained)
}

// completeWord completes a word by those that the presences and the newest records of a store have, and shows no error.
func (a *app) completeWord(c *cobra.Command, prefix string, newest int, ofPresence func(p store.Presence) string, ofRecord func(r store.Record) []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	t := a.target(c)
	if len(a.problems) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionWait)
	defer cancel()
	name := ""
	if f := c.Flags().Lookup("worker-type"); f != nil {
		name = f.Value.String()
	}
	presences, records := newestOf(ctx, t, name, newest)
	var words []string
	for _, p := range presences {
		words = append(words, ofPresence(p))
	}
	for _, r := range records {
		words = append(words, ofRecord(r)...)
	}
	// Shells obey what they are given as a completion: only plain words are.
	words = slices.DeleteFunc(words, func(word string) bool { return !plainWord(word) || !strings.HasPrefix(word, prefix) })
	slices.Sort(words)
	return slices.Compact(words), cobra.ShellCompDirectiveNoFileComp
}

// newestOf are the workers in the roster of a store, and the newest records: of a worker type, or of all.
func newestOf(ctx context.Context, t storeuri.Target, workerType string, newest int) (presences []store.Presence, records []store.Record) {
	l, err := t.Open(ctx, true)
	if err != nil {
		return nil, nil
	}
	defer func() { _ = storeuri.Close(ctx, l) }() // it was only read
	names := []string{workerType}
	if workerType == "" {
		types, _ := inspect.TypesIn(ctx, l)
		names = types.Valid
	}
	if roster, ok := store.As[store.Roster](l); ok {
		presences, _ = roster.Presences(ctx, workerType)
	}
	for _, name := range names {
		of, _, err := l.Tail(ctx, name, newest)
		if err != nil {
			break
		}
		records = append(records, of...)
	}
	return presences, records
}

// plainWord reports that a text means itself to every shell.
func plainWord(text string) bool {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-@"
	return text != "" && text[0] != '-' && strings.Trim(text, plain) == ""
}
