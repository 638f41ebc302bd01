package app

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/firings"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/jobfile"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/listen"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/supervise"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/health"
)

// shownFirings is how many firings of each job --check shows.
const shownFirings = 5

// cronFlags are the flags of cron: some of run's, for all jobs together, and its own.
type cronFlags struct {
	runFlags

	check, watch bool
}

func (a *app) cronCommand() *cobra.Command {
	f := &cronFlags{runFlags: runFlags{level: zapcore.InfoLevel, format: "text"}}
	c := &cobra.Command{
		Use:   "cron [flags] FILE…",
		Short: "Run the jobs of crontabs or jobs.yaml on many machines, each run once",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, files []string) error {
			return a.cron(c, f, files)
		},
		ValidArgsFunction: completeFiles,
	}
	a.cronFlags(c.Flags(), f)
	return needsStore(c)
}

func (a *app) cronFlags(flags *pflag.FlagSet, f *cronFlags) {
	flags.SortFlags = false
	flags.BoolVar(&f.check, "check", false, "run nothing: say what is wrong with the files, or show the next firings of each job; needs no store")
	flags.BoolVar(&f.watch, "watch", false, "reload the files when they change, as SIGHUP does")
	a.instanceFlag(flags, &f.runFlags)
	a.rosterFlags(flags, &f.runFlags)
	a.toldFlags(flags, &f.runFlags)
}

// cron checks all files, and then runs their jobs until a signal ends it.
func (a *app) cron(c *cobra.Command, f *cronFlags, files []string) error {
	if len(files) == 0 {
		a.bad("no file: name a crontab or a jobs.yaml")
	}
	var t storeuri.Target
	if !f.check {
		t = a.target(c)
	}
	if f.check && f.watch {
		a.bad("--check and --watch: give only one of them")
	}
	a.checkRoster(&f.runFlags)
	a.checkPage(c, &f.runFlags)
	// All jobs of a process have one label.
	named, _ := workerlease.Options{WorkerType: "unnamed", LeaseInterval: time.Hour, InstanceID: f.options.InstanceID}.Timing()
	f.options.InstanceID = named.Options.InstanceID
	read := &cronFiles{app: a, names: files, flags: f, roster: f.keepsRoster(t.Billed())}
	jobs, notes, faults := read.jobs(c.Context())
	a.problems = append(a.problems, faults...)
	if err := a.usage(c); err != nil {
		return err
	}
	if f.check {
		return a.showFirings(jobs, notes)
	}
	if err := guardable(); err != nil {
		return exit.With(exit.Command, err)
	}
	ctx, stop := context.WithCancelCause(c.Context())
	defer stop(nil)
	a.own = &hurried{Writer: a.stderr} // The end must not wait for its reader.
	log := a.runLog(&f.runFlags, t, event.Worker{InstanceID: f.options.InstanceID}, func() { stop(interrupt.ErrUnread) })
	defer log.Close()
	return a.leaseAll(ctx, &cronRun{app: a, files: read, target: t, log: log}, jobs, notes)
}

// cronRun are the jobs of a process, and those outside who are told of them.
type cronRun struct {
	*app

	files  *cronFiles
	target storeuri.Target
	log    *runlog.Log
	said   []string // the notes so far
	jobs   *supervise.Jobs
	out    *outlook
}

// leaseAll leases for all jobs until ctx ends, or the store turns out to be unfit.
func (a *app) leaseAll(ctx context.Context, c *cronRun, jobs []cronJob, notes []jobfile.Note) error {
	f := &c.files.flags.runFlags
	var begun atomic.Pointer[supervise.Jobs]
	workers := showing(jobs, &begun)
	out, err := a.outlook(ctx, f, c.log, c.target, listen.Options{All: workers})
	if err != nil {
		return err
	}
	c.out = out
	defer out.close()
	if out.reporter != nil {
		out.reporter.ReportAll(func() []health.Worker { return listen.Plain(workers()) })
	}
	c.log.Jobs(len(jobs), c.files.names)
	c.note(notes)
	ledger, err := a.openToLease(ctx, f, c.target, c.log)
	if ledger == nil {
		return err
	}
	c.jobs = supervise.NewJobs(ledger, supervise.Options{Roster: c.files.roster, Observer: out.observer, Log: c.log})
	_, err = c.jobs.Replace(ctx, c.wanted(jobs))
	begun.Store(c.jobs)
	var unfit error
	if err == nil {
		unfit = c.until(ctx)
	}
	if unfit == nil && err == nil {
		c.log.Stopping(context.Cause(ctx))
	}
	unfit, stopped := c.jobs.Stop(ctx, unfit)
	if unfit == nil && err == nil && stopped == nil {
		c.log.Stopped()
	}
	return a.ended(ctx, f, c.target, ledger, unfit, cmp.Or(err, stopped))
}

// note says notes that weren't said yet.
func (c *cronRun) note(notes []jobfile.Note) {
	for _, n := range notes {
		if text := n.String() + ": " + n.Text; !slices.Contains(c.said, text) {
			c.said = append(c.said, text)
			c.log.Note(text, n.Lost)
		}
	}
}

// wanted are jobs of files as they are to run.
func (c *cronRun) wanted(jobs []cronJob) (all []supervise.Wanted) {
	for _, j := range jobs {
		log := c.log.Of(event.Worker{WorkerType: j.Name, InstanceID: c.files.flags.options.InstanceID})
		command := c.supervised(j.flags, j.Command, c.target, log)
		command.Env, command.Dir, command.User = j.account.environ(command.Env, j.Job), j.account.dir(j.Job), j.account.user
		command.Stdin, command.Input = nil, j.Stdin
		// By whole lines, since other jobs write there, too.
		command.Label, command.Stdout, command.Stderr = j.Name+": ", struct{ io.Writer }{c.stdout}, struct{ io.Writer }{c.stderr}
		keeping(j.flags.output, log, &command)
		command.Ended = c.notifying(j.targets, log, c.out, j.Name, &command)
		all = append(all, supervise.Wanted{Timing: j.timing, Command: command, Same: j.same()})
	}
	return all
}

// showFirings shows the next firings of each job.
func (a *app) showFirings(jobs []cronJob, notes []jobfile.Note) error {
	for _, n := range notes {
		a.printf("note: %s\n", display.Line(n.String()+": "+n.Text))
	}
	now := time.Now()
	for i, j := range jobs {
		l := firings.Of(j.timing.Options.Schedule, j.Name, now, shownFirings)
		if j.timing.Options.Job != nil {
			l.StartWithin, l.Job = j.timing.StartWithin, j.timing.JobTimes()
		}
		if i > 0 || len(notes) > 0 {
			a.printf("\n")
		}
		a.printf("%s", l.Text(a.colour()))
	}
	return nil
}
