package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/jobfile"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/notify"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/workerlease"
)

// cronFiles are the files of cron, and what is so for the jobs of all of them.
type cronFiles struct {
	*app

	names  []string
	flags  *cronFlags
	roster bool            // the workers write into it
	loaded []os.FileInfo   // of the files that were read last
	filled map[string]bool // files that weren't empty once
}

// cronJob is a job of a file whose options are good.
type cronJob struct {
	jobfile.Job

	flags   *runFlags
	timing  workerlease.Timing
	targets map[notify.Event]notify.Target
	account account
}

// jobs reads the jobs of all files, or all that is wrong with them.
func (c *cronFiles) jobs(ctx context.Context) (jobs []cronJob, notes []jobfile.Note, faults []error) {
	c.loaded = stamps(c.names)
	read, notes, err := jobfile.Read(c.names...)
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		faults = all.Unwrap()
	} else if err != nil {
		faults = []error{err}
	}
	if emptied := c.emptied(); len(read) > 0 { // else no file has a job, which a comment doesn't help
		faults = append(faults, emptied...)
	}
	for i, of := range c.loaded {
		if anyoneWrites(of) {
			notes = append(notes, jobfile.Note{Place: jobfile.Place{File: c.names[i]}, Text: "anyone on this machine may write it, and so run commands: try chmod o-w", Lost: true})
		}
	}
	for _, j := range read {
		job, wrong := c.job(ctx, j)
		jobs = append(jobs, job)
		for _, of := range wrong { // A default that is wrong is so for each job, at one place.
			if !slices.ContainsFunc(faults, func(told error) bool { return told.Error() == of.Error() }) {
				faults = append(faults, of)
			}
		}
		if text, is := job.account.homeless(j); is && len(wrong) == 0 {
			notes = append(notes, jobfile.Note{Place: j.Place, Text: text})
		} else if text := job.lacks(); text != "" {
			notes = append(notes, jobfile.Note{Place: j.Place, Text: text, Lost: true})
		}
	}
	if len(read) == 0 && len(faults) == 0 && len(c.names) > 0 {
		faults = append(faults, fmt.Errorf("%s: no job in it", display.Flat(strings.Join(c.names, ", "))))
	}
	return jobs, notes, faults
}

// emptied are the faults of files that are empty and weren't before: a full disk leaves such a file, and its jobs are wanted.
func (c *cronFiles) emptied() (faults []error) {
	if c.filled == nil {
		c.filled = map[string]bool{}
	}
	for i, of := range c.loaded {
		name := c.names[i]
		if of != nil && of.Size() == 0 && c.filled[name] {
			faults = append(faults, &jobfile.Error{Place: jobfile.Place{File: name}, Err: errors.New("is empty, and wasn't before: if it is to have no jobs, write a comment into it")})
		}
		c.filled[name] = c.filled[name] || of != nil && of.Size() > 0
	}
	return faults
}

// job checks a job as run checks its own flags. Each fault names its place.
func (c *cronFiles) job(ctx context.Context, j jobfile.Job) (job cronJob, faults []error) {
	own := &app{env: c.env} // notes the problems of this job
	at := func(place jobfile.Place) {
		for _, p := range own.problems {
			if j.Keyed {
				p = errors.New(jobfile.ByKeys(p.Error()))
			}
			faults = append(faults, &jobfile.Error{Place: place, Err: p})
		}
		own.problems = nil
	}
	job = cronJob{Job: j, flags: &runFlags{}}
	flags := pflag.NewFlagSet(j.Name, pflag.ContinueOnError)
	own.runFlags(flags, job.flags)
	for _, o := range j.Options {
		if err := flags.Set(o.Name, o.Value); err != nil {
			own.bad("%w", err)
		}
		at(o.Place)
	}
	_ = flags.Set("worker-type", j.Name) // The file has checked the name.
	job.flags.options.InstanceID = c.flags.options.InstanceID
	job.timing = own.runTiming(job.flags, flags)
	job.targets = own.targets(ctx, job.flags.onEvents)
	own.checkOutput(job.flags.output)
	if o := job.timing.Options; !c.roster && (len(o.Labels) > 0 || o.TieBreak == priority.Spread) {
		own.bad("labels and tie-break spread: go by the roster: give leasectl cron --roster, and not --no-roster")
	}
	var err error
	if job.account, err = accountOf(j.User, !c.flags.check); err != nil {
		own.bad("%w", err)
	}
	if name := j.Command[0]; filepath.IsAbs(name) || filepath.Base(name) == name {
		if _, err := guard.Find(name, job.account.environ(c.env, j)); err != nil {
			own.bad("command %q: %w", name, cause(err))
		}
	}
	at(j.Place)
	return job, faults
}

// lacks is what to say of a job whose dir, or whose program in it, isn't there; empty: they are. Either may come later.
func (j cronJob) lacks() string {
	absent := func(path string) bool {
		_, err := os.Stat(path)
		return errors.Is(err, fs.ErrNotExist)
	}
	name, dir := j.Command[0], j.account.dir(j.Job)
	switch {
	case j.Dir != "" && j.Dir != jobfile.Home && absent(j.Dir):
		return fmt.Sprintf("%s fails as long as its dir %q isn't there", j.Name, j.Dir)
	case filepath.IsAbs(name) || filepath.Base(name) == name || !absent(filepath.Join(dir, name)):
		return ""
	case dir == "":
		return fmt.Sprintf("%s fails as long as its program %q isn't there", j.Name, name)
	}
	return fmt.Sprintf("%s fails as long as its program %q isn't there, in %q", j.Name, name, dir)
}

// same is equal for jobs that differ in nothing but their places.
func (j cronJob) same() string {
	var options []string
	for _, o := range j.Options {
		options = append(options, o.Name, o.Value)
	}
	var by guard.User
	if j.account.user != nil {
		by = *j.account.user
	}
	// What is in the files that options name counts, too.
	return fmt.Sprintf("%q %q %q %q %q %q %q %v %q %q", options, j.Command, j.Stdin, j.User, j.Dir, j.Env, j.account.home, by, j.targets, j.timing.Options.Schedule)
}
