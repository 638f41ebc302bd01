package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
)

// completeInstance completes the name of a worker by those in the roster, of the worker type that is
// named, or else of all. It gives up as soon as completeWorkerType does.
func (a *app) completeInstance(c *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const timeout = time.Second
	t := a.target(c)
	if len(a.problems) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	name, _ := given(c.Flags(), "worker-type")
	instances, _ := inspect.Instances(ctx, t, name)
	return slices.DeleteFunc(instances, func(name string) bool { return !strings.HasPrefix(name, prefix) }), cobra.ShellCompDirectiveNoFileComp
}
