package app

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"time"
)

// watchEvery is how often --watch looks at the files. A change counts once it has lasted from one look to the next: a file may
// be half written.
const watchEvery = 2 * time.Second

// until leases until ctx ends or the store turns out to be unfit, and returns that. Meanwhile it reloads the files when it is
// told to, or when they change.
func (c *cronRun) until(ctx context.Context) (unfit error) {
	watching, watched := context.WithCancel(ctx)
	defer watched()
	bad, told := c.jobs.Unfit(watching), c.signals.Reloads()
	var looks <-chan time.Time
	if c.files.flags.watch {
		every := time.NewTicker(watchEvery)
		defer every.Stop()
		looks = every.C
	}
	seen := c.files.loaded
	for {
		select {
		case <-ctx.Done():
			return nil
		case unfit = <-bad:
			return unfit
		case <-told:
			c.reload(ctx)
		case <-looks:
			now := stamps(c.files.names)
			if lasts := slices.EqualFunc(now, seen, unchanged); lasts && !slices.EqualFunc(now, c.files.loaded, unchanged) {
				c.reload(ctx)
			}
			seen = now
		}
	}
}

// reload makes the jobs those that the files have now, unless there is a mistake in them.
func (c *cronRun) reload(ctx context.Context) {
	if c.out.reporter != nil {
		defer c.out.reporter.Reloading()()
	}
	jobs, notes, faults := c.files.jobs(ctx)
	c.out.reloaded(len(faults) > 0)
	if len(faults) > 0 {
		c.log.NotReloaded(errors.Join(faults...))
		return
	}
	c.note(notes)
	changes, err := c.jobs.Replace(ctx, c.wanted(jobs))
	c.log.Reloaded(changes.Unchanged, changes.Changed, changes.Added, changes.Removed)
	if err != nil {
		c.log.Unbegun(err)
	}
}

// stamps are what files that have changed differ in, as they are now; nil: one can't be looked at.
func stamps(names []string) (all []os.FileInfo) {
	for _, name := range names {
		info, _ := os.Stat(name) // Why it can't be, the reload says.
		all = append(all, info)
	}
	return all
}

// unchanged reports that two stamps of a file are equal.
func unchanged(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// anyoneWrites reports that every user of the machine may write a file. Windows doesn't say.
func anyoneWrites(file os.FileInfo) bool {
	return file != nil && runtime.GOOS != "windows" && file.Mode().Perm()&0o002 != 0
}
