package jobfile

import (
	"cmp"
	"regexp"
	"strings"
)

// kind is what the value of a key is.
type kind int

const (
	single    kind = iota // a text or a number, as it is written
	repeated              // a list of them, or one; each is an option
	boolean               // an option where it is true
	labels                // a map of texts; each is an option NAME=VALUE
	variables             // the same, for the environment
	arguments             // a list of texts, or one for a shell
)

// key is a key of a job in jobs.yaml.
type key struct {
	name   string
	flag   string // of leasectl run; empty: none
	kind   kind
	alone  bool // not under defaults
	needed bool
	with   string // a default counts only for jobs with this key; with ! in front: without it
	words  string // the values that there are, if these are few, with | between them
	about  string
}

const oncePerSlot, continuous = "oncePerSlot", "continuous"

// keys are the keys of a job. Their names are those of the flags, but for a few that are shorter.
var keys = []key{
	{name: "name", alone: true, needed: true, about: "The worker type: the name that the machines compete for."},
	{name: "schedule", flag: "cron", kind: repeated, with: "!every", about: "A cron spec, or a list of them: a slot lasts from one firing to the next."},
	{name: "every", flag: "every", with: "!schedule", about: "The length of the slots, such as 5m, in place of a schedule."},
	{name: "from", flag: "from", with: "every", about: "With every: the time of day at which a slot begins, such as 00:30."},
	{name: "zone", flag: "zone", with: "schedule", about: "The time zone of the schedule, such as Europe/Berlin. Default: UTC."},
	{name: "except", flag: "except", kind: repeated, about: "Dates on which the job doesn't run, such as 2026-12-24 or 2026-12-24..2026-12-26, or a list of them."},
	{name: "exceptFile", flag: "except-file", about: "A file of such dates, one a line."},
	{name: "spread", flag: "spread", about: "The job begins at a place of its own within this long after a firing, by a hash of its name, such as 10m."},
	{name: "command", kind: arguments, alone: true, needed: true, about: "The program and its arguments, or a line for /bin/sh."},
	{name: "stdin", alone: true, about: "The standard input of the command."},
	{name: "user", about: "The user by whom the command runs. Default: the user of leasectl."},
	{name: "dir", about: "The directory in which the command begins; ~ in quotes is the user's home. Default: that of leasectl."},
	{name: "env", kind: variables, about: "Variables over the environment of leasectl. Those under defaults are added."},
	{name: oncePerSlot, flag: "once-per-slot", kind: boolean, about: "The command is done once in each slot: exit code 0 means done. Default: true, but false with continuous."},
	{name: "startWithin", flag: "start-within", with: oncePerSlot, about: "How late after its time the first attempt may begin. Default: a quarter of the slot, at most 1h."},
	{name: "overrun", flag: "overrun", with: oncePerSlot, words: "finish|stop", about: "What happens to a run when its slot ends: finish (default) or stop."},
	{name: "timeout", flag: "run-timeout", with: oncePerSlot, about: "The longest that a run may take. Default: no bound."},
	{name: "catchUp", flag: "catch-up", with: oncePerSlot, words: "none|newest|all", about: "Which missed slots are run late: none (default), newest or all."},
	{name: "catchUpWithin", flag: "catch-up-within", with: oncePerSlot, about: "How long ago such a slot may have started. Default: 24h, or the slot's length if that is more."},
	{name: "maxAttempts", flag: "max-attempts", with: oncePerSlot, about: "Tries of a slot by all machines together. Default: no bound."},
	{name: "minRetry", flag: "min-retry", with: oncePerSlot, about: "The least time from a failure to the next attempt, doubled by each. Default: a 240th of the slot, 1s to 10m."},
	{name: "failoverWithin", flag: "failover-within", about: "How soon another machine takes over from one that dies."},
	{name: continuous, flag: "continuous", kind: boolean, about: "The command goes on from slot to slot, and isn't meant to end."},
	{name: "noFailback", flag: "no-failback", kind: boolean, with: continuous, about: "With continuous: keep the lease from higher priorities, too."},
	{name: "onExit", flag: "on-exit", with: "!" + oncePerSlot, words: "release|restart|keep", about: "What follows the end of the command without oncePerSlot: release, restart or keep."},
	{name: "waitForBoundary", flag: "wait-for-boundary", kind: boolean, about: "Claim nothing of the slot in which leasectl starts."},
	{name: "priority", flag: "priority", about: "The priority of this machine: 0 (default) is the highest, 7 the lowest."},
	{name: "tieBreak", flag: "tie-break", words: "sticky|rotate|random|spread", about: "The order of machines of one priority: sticky (default), rotate, random or spread."},
	{name: "group", flag: "group", about: "Share the lease with all machines of the group."},
	{name: "labels", flag: "label", kind: labels, about: "What others may know of this machine, such as region: eu. Those under defaults are added."},
	{name: "stopGrace", flag: "stop-grace", about: "The time between SIGTERM and SIGKILL."},
	{name: "retention", flag: "retention", about: "How long records are kept. Default: 24h; a job's 14 days, or 100 slots if that is longer, and no more than 2000."},
	{name: "drainTimeout", flag: "drain-timeout", with: oncePerSlot, about: "How long a run may go on when its leasectl is told to end."},
	{name: "lead", flag: "lead", about: "How long before a boundary claims open."},
	{name: "step", flag: "step", about: "The distance between the turns of two priorities."},
	{name: "margin", flag: "margin", about: "How long before the end of the lease work stops."},
	{name: "onSuccess", flag: "on-success", about: "A command or a URL that is told of each run that is done."},
	{name: "onFailure", flag: "on-failure", about: "The same for each attempt that failed."},
	{name: "onGivenUp", flag: "on-given-up", about: "The same for each slot whose attempts are used up."},
	{name: "onMissed", flag: "on-missed", about: "The same for each slot in which no attempt began."},
	{name: "output", flag: "output", about: "Where the output of a run is kept, besides that of leasectl."},
}

// KeyOf is the key in jobs.yaml for a flag of leasectl run, empty if there is none.
func KeyOf(flag string) string {
	for _, k := range keys {
		if k.flag == flag {
			return k.name
		}
	}
	return ""
}

// flagsIn are quoted texts, which are values of users, and flags.
var flagsIn = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|--[a-z][a-z-]*`)

// ByKeys is a text with the keys in jobs.yaml for the flags of leasectl run that it names.
func ByKeys(text string) string {
	return flagsIn.ReplaceAllStringFunc(text, func(word string) string {
		flag, _ := strings.CutPrefix(word, "--")
		return cmp.Or(KeyOf(flag), word)
	})
}

// Flags are the flags of leasectl run that a job may have, and the values of those that have few, with | between them.
func Flags() map[string]string {
	flags := map[string]string{}
	for _, k := range keys {
		if k.flag != "" {
			flags[k.flag] = k.words
		}
	}
	return flags
}

// keyOf is the key of a name, nil if there is none.
func keyOf(name string) *key {
	for i := range keys {
		if keys[i].name == name {
			return &keys[i]
		}
	}
	return nil
}

// keyNames are the names of the keys of a job, or of the defaults.
func keyNames(defaults bool) (names []string) {
	for _, k := range keys {
		if !defaults || !k.alone {
			names = append(names, k.name)
		}
	}
	return names
}
