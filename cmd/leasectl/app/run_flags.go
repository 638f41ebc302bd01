package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/flagname"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/listen"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/notify"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/page"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/supervise"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/transcript"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
)

// runFlags are the flags of run.
type runFlags struct {
	scheduleFlags

	options            workerlease.Options // but for the schedule and the job
	job                workerlease.Job
	oncePerSlot, once  bool
	stopGrace, timeout time.Duration
	conflict           int
	onExit             supervise.OnExit
	level              zapcore.Level
	format, listen     string
	page               bool
	pageToken          string
	pageAccess         page.Access
	verbose, tether    bool
	roster, noRoster   bool
	onEvents           map[notify.Event]string
	output             transcript.Where
}

func (a *app) runFlags(flags *pflag.FlagSet, f *runFlags) {
	flags.SortFlags = false
	option(a, flags, &f.options.WorkerType, "worker-type", "TYPE", "the name that workers compete for (required)", workerType)
	a.scheduleFlags(flags, &f.scheduleFlags)
	flags.BoolVar(&f.oncePerSlot, "once-per-slot", false, "a job: exit code 0 means that the slot is done")
	flags.BoolVar(&f.once, "once", false, "run it in what is left of this slot; end with its code")
	f.conflict = exit.Unallocated
	option(a, flags, &f.timeout, "timeout", "DURATION", "with --once: how long to wait for the store (default 10s), for who has the slot, and to try again", duration(time.Millisecond, slots.MaxInterval))
	option(a, flags, &f.conflict, "conflict-exit-code", "CODE", "--once: code if another worker has the slot (default 10)", number(0, 255))
	a.jobTimeFlags(flags, &f.job)
	option(a, flags, &f.options.FailoverWithin, "failover-within", "DURATION", "how soon another worker takes over from one that dies: 80ms to half a slot (default never; job: a quarter of the slot, at most 1m)", nonZero)
	flags.BoolVar(&f.options.Continuous, "continuous", false, "go on from slot to slot without stopping the command")
	flags.BoolVar(&f.options.NoFailback, "no-failback", false, "--continuous: keep it from higher priorities, too")
	option(a, flags, &f.onExit, "on-exit", "release|restart|keep", "what follows the end of the command (default release after a failure, else keep, or with --continuous restart)", named(supervise.Release, supervise.Restart, supervise.Keep))
	flags.BoolVar(&f.options.WaitForBoundary, "wait-for-boundary", false, "claim nothing of the slot in which the worker starts")
	option(a, flags, &f.options.Priority, "priority", "0-7", "0 is the highest (default 0)", wholeNumber)
	option(a, flags, &f.options.TieBreak, "tie-break", "ORDER", "of one priority: sticky (default), rotate, random or spread", tieBreak)
	option(a, flags, &f.options.Group, "group", "NAME", "share the lease with all workers of the group", nonEmpty)
	a.instanceFlag(flags, f)
	flags.Var(labelFlag{a, &f.options.Labels}, "label", "what others may know, such as region=eu; repeat it for more")
	a.rosterFlags(flags, f)
	a.notifyFlags(flags, &f.onEvents)
	option(a, flags, &f.output, "output", "WHERE", "journal, file:PATH, or tail: its end into the ledger, too", transcript.Parse)
	choose[transcript.Where](flags, "output", "journal", "tail", "file:")
	option(a, flags, &f.stopGrace, "stop-grace", "DURATION", "time between SIGTERM and SIGKILL (default 1/20 of the lease or of --failover-within, at most 5s)", duration(0, time.Hour))
	option(a, flags, &f.options.DrainTimeout, "drain-timeout", "DURATION", "job: how long a run may go on after the first signal", nonZero)
	option(a, flags, &f.options.Retention, "retention", "DURATION", "how long records are kept (default 24h; a job's 14 days)", nonZero)
	option(a, flags, &f.options.Lead, "lead", "DURATION", "how long before a boundary claims open (default a quarter of the slot, at most 10s)", anyDuration)
	option(a, flags, &f.options.Step, "step", "DURATION", "between the turns of two priorities (default lead/10)", anyDuration)
	option(a, flags, &f.options.Margin, "margin", "DURATION", "how long before the end of the lease work stops (default slot/100, at least 10ms, at most --failover-within/20 and 250ms)", nonZero)
	a.toldFlags(flags, f)
	flags.BoolVar(&f.tether, "tether", false, "end at once when the standard input ends")
	choose[priority.TieBreak](flags, "tie-break", "sticky", "rotate", "random", "spread")
	_ = flags.MarkHidden("tether") // of the demo
	for _, name := range []string{"page", "page-token-file"} {
		_ = flags.MarkHidden(name) // leasectl help listen has it
	}
}

// jobTimes are the flags of when a job's runs begin and end.
var jobTimes = []string{"start-within", "overrun", "run-timeout", "catch-up", "catch-up-within", "max-attempts", "min-retry"}

// jobTimeFlags adds them.
func (a *app) jobTimeFlags(flags *pflag.FlagSet, job *workerlease.Job) {
	option(a, flags, &job.StartWithin, "start-within", "DURATION", "job: how late after the slot's start the first attempt may begin (default a quarter of the slot, at most 1h)", nonZero)
	option(a, flags, &job.Overrun, "overrun", "finish|stop", "job: what happens when its slot ends (default finish)", named(workerlease.Finish, workerlease.Stop))
	option(a, flags, &job.Timeout, "run-timeout", "DURATION", "job: the longest that a run may take (default no bound)", nonZero)
	option(a, flags, &job.CatchUp, "catch-up", "none|newest|all", "job: which missed slots are run late (default none)", named(workerlease.CatchUpNone, workerlease.CatchUpNewest, workerlease.CatchUpAll))
	option(a, flags, &job.CatchUpWithin, "catch-up-within", "DURATION", "how long ago those began (default 24h, or a longer slot)", nonZero)
	option(a, flags, &job.MaxAttempts, "max-attempts", "N", "job: tries of a slot by all workers (default until it ends)", attempts)
	option(a, flags, &job.MinRetry, "min-retry", "DURATION", "job: wait after a failure (default slot/240, 1s to 10m)", duration(10*time.Millisecond, time.Hour))
}

// instanceFlag adds --instance-id.
func (a *app) instanceFlag(flags *pflag.FlagSet, f *runFlags) {
	option(a, flags, &f.options.InstanceID, "instance-id", "LABEL", "label of this worker (default host-pid-xxxx)", nonEmpty)
}

// rosterFlags adds the flags about the roster.
func (a *app) rosterFlags(flags *pflag.FlagSet, f *runFlags) {
	flags.BoolVar(&f.noRoster, "no-roster", false, "don't show in leasectl inspect workers")
	flags.BoolVar(&f.roster, "roster", false, "show there, too, where each request costs")
}

// toldFlags adds the flags about what those outside are told.
func (a *app) toldFlags(flags *pflag.FlagSet, f *runFlags) {
	option(a, flags, &f.listen, "listen", "ADDRESS", "answer /healthz, /readyz, /status and /metrics at HOST:PORT; a PORT alone is one of 127.0.0.1", listen.Address)
	flags.BoolVar(&f.page, "page", false, "with --listen: serve the page of leasectl serve at /page/, too, which only shows")
	option(a, flags, &f.pageToken, "page-token-file", "FILE", "the file of the token that the page asks for; needed where others reach --listen", nonEmpty)
	option(a, flags, &f.level, "log-level", "LEVEL", "debug, info, warn or error, on stderr (default info)", logLevel)
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "same as --log-level debug")
	option(a, flags, &f.format, "log-format", "text|json", "how to log (default text)", oneOf("text", "json"))
	choose[zapcore.Level](flags, "log-level", "debug", "info", "warn", "error")
}

// named reads the text of one of some values.
func named[T any](values ...T) func(string) (T, error) {
	var words []string
	for _, v := range values {
		words = append(words, fmt.Sprint(v))
	}
	return func(s string) (T, error) {
		word, err := oneOf(words...)(s)
		return values[max(slices.Index(words, word), 0)], err
	}
}

// logLevel reads --log-level.
func logLevel(s string) (zapcore.Level, error) {
	word, err := oneOf("debug", "info", "warn", "error")(s)
	if err != nil {
		return 0, err
	}
	return zapcore.ParseLevel(word)
}

// runTiming makes the worker's options of the flags, and notes their problems.
func (a *app) runTiming(f *runFlags, flags *pflag.FlagSet) workerlease.Timing {
	o := f.options
	o.WorkerType = cmp.Or(o.WorkerType, "unnamed") // If it is missing, or bad, that is noted already.
	o.Schedule = a.schedule(f.scheduleFlags, flags, o.WorkerType)
	if f.noRoster {
		a.checkWithoutRoster(f)
	}
	a.checkRoster(f)
	if !flags.Changed("worker-type") {
		a.bad("--worker-type is missing: give the name that workers compete for")
	}
	if f.oncePerSlot {
		o.Job = &f.job
	} else {
		a.goesOnlyWith(flags, "once-per-slot", jobTimes...)
	}
	a.checkOnExit(f)
	a.checkOnce(f, flags)
	t, ok := a.timing(o)
	if !ok {
		// By the options that bound the grace.
		t, _ = workerlease.Options{WorkerType: o.WorkerType, Schedule: o.Schedule, FailoverWithin: o.FailoverWithin, Job: o.Job}.Timing()
	}
	a.checkGrace(f, flags, t)
	return t
}

// checkRoster notes that a roster is wanted and isn't.
func (a *app) checkRoster(f *runFlags) {
	if f.roster && f.noRoster {
		a.bad("--roster and --no-roster: give one of them")
	}
}

// timing resolves options, and notes their problems.
func (a *app) timing(o workerlease.Options) (t workerlease.Timing, ok bool) {
	t, err := o.Timing()
	for _, problem := range workerlease.OptionErrors(err) {
		a.bad("%s", flagname.Problem(problem))
	}
	return t, err == nil
}

// keepsRoster reports whether the worker writes into the roster of a store, which may charge for each request.
func (f *runFlags) keepsRoster(billed bool) bool {
	return !f.noRoster && (!billed || f.roster || len(f.options.Labels) > 0 || f.options.TieBreak == priority.Spread)
}

// checkWithoutRoster notes the flags that go by the roster.
func (a *app) checkWithoutRoster(f *runFlags) {
	if f.options.TieBreak == priority.Spread {
		a.bad("--tie-break %q: goes by the roster: leave out --no-roster", f.options.TieBreak)
	}
	if len(f.options.Labels) > 0 {
		a.bad("--label: is said in the roster: leave out --no-roster")
	}
}

// labelFlag takes labels.
type labelFlag struct {
	a      *app
	labels *map[string]string
}

func (labelFlag) Type() string   { return "NAME=VALUE" }
func (labelFlag) String() string { return "" }

// Set adds a label. A problem is noted, as those of other options are.
func (l labelFlag) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		l.a.bad("--label %q: must be NAME=VALUE", secret.Shown(text))
		return nil
	}
	if _, twice := (*l.labels)[name]; twice {
		l.a.bad("--label %q: is given twice", name)
	}
	if *l.labels == nil {
		*l.labels = map[string]string{}
	}
	(*l.labels)[name] = value
	return nil
}

// checkOnce notes the flags that mean nothing with --once, or without it.
func (a *app) checkOnce(f *runFlags, flags *pflag.FlagSet) {
	if !f.once {
		a.goesOnlyWith(flags, "once", "timeout", "conflict-exit-code")
		return
	}
	flags.Visit(func(given *pflag.Flag) {
		if why, refused := onceRefuses[given.Name]; refused {
			a.bad("--%s: not with --once, which %s", given.Name, why)
			a.try = "leasectl help once"
		}
	})
	if f.oncePerSlot && f.conflict == exit.OK {
		a.bad("--conflict-exit-code 0: not with --once-per-slot, where 0 says that the slot is done")
		a.try = "leasectl help once"
	}
}

// onceRefuses are the flags that mean nothing with --once, and why.
var onceRefuses = map[string]string{
	"continuous":        "ends with its command",
	"no-failback":       "ends with its command",
	"on-exit":           "ends with its command",
	"catch-up":          "runs the command for the current slot alone",
	"wait-for-boundary": "claims what is left of the current slot",
	"group":             "shares its lease with nobody",
	"priority":          "claims at once, whatever its turn would be",
	"tie-break":         "claims at once, whatever its turn would be",
	"listen":            "ends with its command",
	"lead":              "claims at once, whatever its turn would be",
	"step":              "claims at once, whatever its turn would be",
}

// checkOnExit notes an --on-exit that can't be.
func (a *app) checkOnExit(f *runFlags) {
	switch {
	case f.onExit == supervise.Default:
	case f.oncePerSlot:
		a.bad("--on-exit %q: not with --once-per-slot, where the exit code decides: 0 is done, and any other is tried again", f.onExit)
	case f.onExit == supervise.Release && f.options.Group != "":
		a.bad("--on-exit %q: not with --group, whose lease is never released, since other members may work", f.onExit)
	}
}

// checkGrace notes a --stop-grace that is too long for the leases.
func (a *app) checkGrace(f *runFlags, flags *pflag.FlagSet, t workerlease.Timing) {
	text, ok := given(flags, "stop-grace")
	if !ok {
		return
	}
	if shortest := t.ShortestSlot; shortest > 0 && f.stopGrace >= shortest/2 {
		a.bad("--stop-grace %q: must be less than %v, half of the shortest slot", text, shortest/2)
	}
	if most := t.ExtendEarly; most > 0 && f.stopGrace > most && f.options.DrainTimeout == 0 {
		a.bad("--stop-grace %q: must be at most a quarter of --failover-within, and 5m (%v): no more is ever sure to be left", text, most)
	}
}
