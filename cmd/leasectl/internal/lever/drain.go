package lever

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// Drain keeps the workers of a host from claiming: of one worker type, or of all that the roster has
// workers of on that host.
func Drain(ctx context.Context, t storeuri.Target, o Options, out io.Writer) error {
	return o.opened(ctx, t, func(ctx context.Context, l store.Ledger) error {
		types := []string{o.WorkerType}
		if o.WorkerType == "" {
			var err error
			if types, err = typesOn(ctx, l, o.Target); err != nil {
				return advice.ForStore(t, err)
			}
			if len(types) == 0 {
				return exit.BadUsage("--worker-type TYPE", fmt.Errorf("the roster has no worker on host %q%s: name the worker type", o.Target, hostsIn(ctx, l)))
			}
		}
		if o.Now {
			if err := o.ask("stop what holds a lease of %d worker types on %s when it reads that?", len(types), o.Target); err != nil {
				return err
			}
		}
		answer := struct {
			Orders []Given `json:"orders"`
		}{[]Given{}}
		var lines []string
		var failed error
		for _, name := range types {
			r, err := operate.On(l).Give(ctx, operate.Order{
				Kind: store.OrderDrain, WorkerType: name, Target: o.Target, Until: o.Until, For: o.For, Now: o.Now, InstanceID: o.By, Reason: o.Reason,
			})
			if err != nil {
				of := o
				of.WorkerType = name
				failed = errors.Join(failed, failure(t, &of, err))
				if errors.Is(err, store.ErrRefused) {
					continue // Another program has overwritten that ledger alone.
				}
				break // The same would befall the others.
			}
			g := given(r)
			g.Undo, g.Warning = undo(t, g), doubt(ctx, l, r)
			answer.Orders = append(answer.Orders, g)
			lines = append(lines, g.text())
		}
		if len(lines) > 0 || failed == nil {
			failed = errors.Join(o.show(out, answer, strings.Join(lines, "")), failed)
		}
		return failed
	})
}

// hostsIn names some of the hosts that the roster has workers on, after a comma.
func hostsIn(ctx context.Context, l store.Ledger) string {
	roster, ok := store.As[store.Roster](l)
	if !ok {
		return ""
	}
	all, err := roster.Presences(ctx, "")
	var hosts []string
	for _, p := range all {
		if p.Host != "" && p.Phase != store.PhaseStopped {
			hosts = append(hosts, display.Clip(display.Line(p.Host), 64))
		}
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	const most = 10
	switch n := len(hosts); {
	case err != nil || n == 0:
		return ""
	case n > most:
		return fmt.Sprintf(", but on %s and %d more", strings.Join(hosts[:most], ", "), n-most)
	}
	return ", but on " + strings.Join(hosts, ", ")
}

// typesOn are the worker types that the roster has workers of on a host.
func typesOn(ctx context.Context, l store.Ledger, host string) (types []string, err error) {
	roster, ok := store.As[store.Roster](l)
	if !ok {
		return nil, nil
	}
	all, err := roster.Presences(ctx, "")
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	if partial, is := store.As[store.PartialRoster](l); is && err == nil {
		if err = partial.Unlisted(); err != nil {
			err = fmt.Errorf("nothing was drained, for some of its workers may not be known (--worker-type drains those of a type): %w", err)
		}
	}
	for _, p := range all {
		if p.Host == host && p.Phase != store.PhaseStopped && store.CheckWorkerType(p.WorkerType) == nil && !slices.Contains(types, p.WorkerType) {
			types = append(types, p.WorkerType)
		}
	}
	slices.Sort(types)
	return types, err
}
