package app

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/flagname"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/listen"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// runFlags are the flags of run.
type runFlags struct {
	scheduleFlags

	workerType, instanceID, group string
	priority                      int
	tieBreak                      priority.TieBreak
	joinMidSlot                   bool
	lead, step, margin, stopGrace time.Duration
	failover                      time.Duration
	continuous, noFailback        bool
	oncePerSlot, runMissed        bool
	maxAttempts                   int
	minRetry                      time.Duration
	level                         zapcore.Level
	verbose                       bool
	format                        string
	noRoster                      bool
	labels                        map[string]string
	tether                        bool
	once                          bool
	timeout                       time.Duration
	conflict                      int
	listen                        string
}

func (a *app) runFlags(c *cobra.Command, f *runFlags) {
	flags := c.Flags()
	flags.SortFlags = false
	option(a, flags, &f.workerType, "worker-type", "TYPE", "the name that workers compete for (required)", workerType)
	option(a, flags, &f.every, "every", "DURATION", "length of the slots, aligned to the clock", anyDuration)
	flags.StringVar(&f.cron, "cron", "", "cron `SPEC` (five fields): a slot lasts from one firing to the next")
	flags.StringVar(&f.zone, "zone", "", "`ZONE` of the cron spec, such as Europe/Berlin (default UTC)")
	flags.BoolVar(&f.oncePerSlot, "once-per-slot", false, "the command is a job of each slot: exit code 0 means done, and any other that workers try it again")
	flags.BoolVar(&f.once, "once", false, "run the command in what is left of the current slot, if no other worker has it, and end with its exit code")
	f.timeout, f.conflict = defaultTimeout, exit.Unallocated
	option(a, flags, &f.timeout, "timeout", "DURATION", "with --once: how long to wait for the store (default 10s)", duration(time.Millisecond, time.Hour))
	option(a, flags, &f.conflict, "conflict-exit-code", "CODE", "with --once: the exit code if the slot can't be had (default 10)", number(0, 255))
	option(a, flags, &f.maxAttempts, "max-attempts", "N", "with --once-per-slot: tries of a slot by all workers together (default no bound)", number(1, store.MaxAttempt))
	option(a, flags, &f.minRetry, "min-retry", "DURATION", "with --once-per-slot: least time from a failed attempt to the next, doubled by each attempt up to an eighth of the slot (default 1s)", duration(10*time.Millisecond, time.Hour))
	flags.BoolVar(&f.runMissed, "run-missed", false, "with --once-per-slot: make up for the slot before, if no worker did it")
	option(a, flags, &f.failover, "failover-within", "DURATION", "how soon another worker takes over a slot whose worker dies: 80ms to half a slot (default never, or with --once-per-slot a quarter of the slot, at most 1m)", nonZero)
	flags.BoolVar(&f.continuous, "continuous", false, "go on from slot to slot while this worker wins them, without stopping the command")
	flags.BoolVar(&f.noFailback, "no-failback", false, "with --continuous: keep the lease while this worker lives, even from higher priorities")
	flags.BoolVar(&f.joinMidSlot, "join-mid-slot", false, "claim the rest of the slot in which the worker starts, if it is free")
	option(a, flags, &f.priority, "priority", "0-7", "0 is the highest (default 0)", wholeNumber)
	option(a, flags, &f.tieBreak, "tie-break", "sticky|rotate|random|spread", "order of workers of one priority (default sticky)", tieBreak)
	option(a, flags, &f.group, "group", "NAME", "share the lease with all workers of the group", nonEmpty)
	option(a, flags, &f.instanceID, "instance-id", "LABEL", "label of this worker (default host-pid-xxxx)", nonEmpty)
	flags.Var(labelFlag{a, &f.labels}, "label", "what others may know of this worker, such as region=eu; may be given more than once")
	flags.BoolVar(&f.noRoster, "no-roster", false, "don't say in the ledger's roster what this worker does (leasectl inspect workers)")
	option(a, flags, &f.stopGrace, "stop-grace", "DURATION", "time between SIGTERM and SIGKILL (default 1/20 of the lease, or of --failover-within, at most 5s)", duration(0, time.Hour))
	option(a, flags, &f.lead, "lead", "DURATION", "how long before a boundary claims open (default a quarter of the slot, at most 10s and half of --failover-within)", anyDuration)
	option(a, flags, &f.step, "step", "DURATION", "distance between the turns of two priorities (default lead/10)", anyDuration)
	option(a, flags, &f.margin, "margin", "DURATION", "how long before the end of the lease work stops (default slot/100, at most --failover-within/20 and 250ms, at least 10ms)", nonZero)
	option(a, flags, &f.listen, "listen", "ADDRESS", "answer HTTP requests for /healthz, /readyz, /status and /metrics at HOST:PORT; a PORT alone is one of 127.0.0.1", listen.Address)
	option(a, flags, &f.level, "log-level", "debug|info|warn|error", "what to log on stderr (default info)", logLevel)
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "same as --log-level debug")
	option(a, flags, &f.format, "log-format", "text|json", "how to log (default text)", oneOf("text", "json"))
	flags.BoolVar(&f.tether, "tether", false, "end at once when the standard input ends")
	_ = flags.MarkHidden("tether") // of the demo
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
	o := workerlease.Options{
		// If it is missing, or bad, that is noted already.
		WorkerType: cmp.Or(f.workerType, "unnamed"), InstanceID: f.instanceID, Group: f.group,
		Priority: f.priority, TieBreak: f.tieBreak, Schedule: a.schedule(f.scheduleFlags, flags),
		JoinMidSlot: f.joinMidSlot, FailoverWithin: f.failover, Continuous: f.continuous, NoFailback: f.noFailback,
		Lead: f.lead, Step: f.step, Margin: f.margin, Labels: f.labels,
	}
	if f.noRoster {
		a.checkWithoutRoster(f)
	}
	if !flags.Changed("worker-type") {
		a.bad("--worker-type is missing: give the name that workers compete for")
	}
	if f.oncePerSlot {
		o.Job = &workerlease.Job{MaxAttempts: f.maxAttempts, MinRetry: f.minRetry, RunMissed: f.runMissed}
	} else {
		a.checkWithoutJob(f, flags)
	}
	a.checkOnce(f, flags)
	t, ok := a.timing(o)
	if !ok {
		// By the options that bound the grace.
		t, _ = workerlease.Options{WorkerType: o.WorkerType, Schedule: o.Schedule, FailoverWithin: f.failover, Job: o.Job}.Timing()
	}
	a.checkGrace(f, flags, t)
	return t
}

// timing resolves options, and notes their problems.
func (a *app) timing(o workerlease.Options) (t workerlease.Timing, ok bool) {
	t, err := o.Timing()
	for _, problem := range workerlease.OptionErrors(err) {
		a.bad("%s", flagname.Problem(problem))
	}
	return t, err == nil
}

// checkWithoutRoster notes the flags that go by the roster.
func (a *app) checkWithoutRoster(f *runFlags) {
	if f.tieBreak == priority.Spread {
		a.bad("--tie-break %q: goes by the roster: leave out --no-roster", f.tieBreak)
	}
	if len(f.labels) > 0 {
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
		for _, name := range []string{"timeout", "conflict-exit-code"} {
			if text, ok := given(flags, name); ok {
				a.bad("--%s %q: goes with --once only", name, text)
			}
		}
		return
	}
	flags.Visit(func(given *pflag.Flag) {
		if why, refused := onceRefuses[given.Name]; refused {
			a.bad("--%s: not with --once, which %s", given.Name, why)
		}
	})
}

// onceRefuses are the flags that mean nothing with --once, and why.
var onceRefuses = map[string]string{
	"continuous":    "ends with its command",
	"no-failback":   "ends with its command",
	"run-missed":    "runs the command for the current slot alone",
	"join-mid-slot": "claims what is left of the current slot anyway",
	"group":         "shares its lease with nobody",
	"priority":      "claims at once, whatever its turn would be",
	"tie-break":     "claims at once, whatever its turn would be",
	"listen":        "ends with its command",
	"lead":          "claims at once, whatever its turn would be",
	"step":          "claims at once, whatever its turn would be",
}

// checkWithoutJob notes the flags that need --once-per-slot.
func (a *app) checkWithoutJob(f *runFlags, flags *pflag.FlagSet) {
	for _, name := range []string{"max-attempts", "min-retry"} {
		if text, ok := given(flags, name); ok {
			a.bad("--%s %q: goes with --once-per-slot only", name, text)
		}
	}
	if f.runMissed {
		a.bad("--run-missed: goes with --once-per-slot only")
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
	if most := t.ExtendEarly; most > 0 && f.stopGrace > most {
		a.bad("--stop-grace %q: must be at most a quarter of --failover-within, and 5m (%v): no more is ever sure to be left", text, most)
	}
}
