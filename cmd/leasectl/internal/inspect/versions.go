package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/table"
	"github.com/slotlease/slotlease/store"
)

// Versions shows which versions the workers of a ledger run: those that are there by the roster, and holders that aren't
// in it. The error is a fault if any runs another version than this one.
func Versions(ctx context.Context, t storeuri.Target, o Options, this string, s Screen) error {
	return open(ctx, t, o, func(l store.Ledger) error { return showVersions(ctx, t, l, o, this, s) })
}

func showVersions(ctx context.Context, t storeuri.Target, l store.Ledger, o Options, this string, s Screen) error {
	look := glimpses(ctx, t, l, o, func(ctx context.Context, l *charges.Ledger, found *fleet) error {
		c := crew{glimpse: found.glimpse}
		err := c.take(ctx, l)
		found.glimpse, found.this = c.glimpse, this
		if partial, is := store.As[store.PartialRoster](l); is && err == nil {
			found.lacks = partial.Unlisted()
		}
		found.add(c)
		return err
	})
	found, err := look()
	if err := once(o, s, func() (fleet, error) { return found, err }); err != nil {
		return err
	}
	return found.fault()
}

// fleet is which versions run at a moment.
type fleet struct {
	glimpse

	this     string // the version of this program
	lacks    error  // whose workers can't be listed, if any
	releases []release
}

// release is a version that runs, and where.
type release struct {
	version   string // "": the worker doesn't say
	instances []string
	processes map[string]bool
}

// unknown stands for the version of a worker that doesn't say it.
const unknown = "unknown"

// add adds the workers that are there.
func (f *fleet) add(c crew) {
	found := map[string]*release{}
	add := func(version, process, instance string) {
		version = cmp.Or(version, unknown)
		r := found[version]
		if r == nil {
			r = &release{version: version, processes: map[string]bool{}}
			found[version] = r
		}
		r.processes[process] = true
		if !slices.Contains(r.instances, instance) {
			r.instances = append(r.instances, instance)
		}
	}
	for _, w := range c.workers {
		if w.Present {
			add(w.Version, cmp.Or(w.Client, w.ID), w.InstanceID)
		}
	}
	for _, r := range c.absent {
		add(r.Worker.Version, fmt.Sprint(r.Worker.Host, " ", r.Worker.PID), r.InstanceID)
	}
	for _, r := range found {
		slices.Sort(r.instances)
		f.releases = append(f.releases, *r)
	}
	slices.SortFunc(f.releases, func(a, b release) int {
		return cmp.Or(cmp.Compare(len(b.processes), len(a.processes)), strings.Compare(a.version, b.version))
	})
}

// others counts the processes of another version than this one, and all.
func (f fleet) others() (n, all int) {
	for _, r := range f.releases {
		all += len(r.processes)
		if r.version != f.this {
			n += len(r.processes)
		}
	}
	return n, all
}

// fault is nil if all run this version.
func (f fleet) fault() error {
	n, all := f.others()
	switch {
	case n == 0 && f.lacks != nil:
		return exit.With(exit.Unsound, fmt.Errorf("others may run another version: %w", f.lacks))
	case n == 0:
		return nil
	case all == 1:
		return exit.With(exit.Unsound, fmt.Errorf("the only process runs another version than this leasectl, %s", f.this))
	}
	return exit.With(exit.Unsound, fmt.Errorf("%d of %d processes run another version than this leasectl, %s", n, all, f.this))
}

func (f fleet) drawing(colours, framed bool) string {
	if len(f.releases) == 0 {
		return f.framed("versions of workers", "no workers are known\n", framed)
	}
	var texts [][]string
	for _, r := range f.releases {
		texts = append(texts, []string{r.version, fmt.Sprint(len(r.processes)), strings.Join(r.instances, ", ")})
	}
	rows := grid([]column{
		{name: "VERSION", colour: func(n int, _ string) table.Colour {
			if f.releases[n].version != f.this {
				return table.Yellow
			}
			return table.Green
		}},
		{name: "PROCESSES", right: true},
		{name: "INSTANCES"},
	}, texts)
	return f.framed("versions of workers", strings.Join(table.Lines(rows, nil, colours), "\n")+"\n", framed)
}

// Release is a version in the JSON form of version --check. Its names don't change.
type Release struct {
	Version   string   `json:"version"`
	Same      bool     `json:"same"` // as this leasectl's
	Processes int      `json:"processes"`
	Instances []string `json:"instances"`
}

// Fleet is the JSON form of version --check. Its names don't change.
type Fleet struct {
	StoreTime string        `json:"storeTime"`
	Store     string        `json:"store"`
	Version   string        `json:"version"` // of this leasectl
	Releases  []Release     `json:"releases"`
	Warning   string        `json:"warning,omitempty"`
	Units     *charges.JSON `json:"requestUnits,omitempty"`
}

func (f fleet) json() any {
	out := Fleet{StoreTime: store.Format(f.at), Store: f.store, Version: f.this, Releases: []Release{}, Warning: f.warning, Units: charges.ToJSON(f.charges)}
	for _, r := range f.releases {
		out.Releases = append(out.Releases, Release{r.version, r.version == f.this, len(r.processes), r.instances})
	}
	return out
}
