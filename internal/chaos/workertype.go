//go:build linux

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// perType is how many workers a worker type has.
const perType = 3

// workerType is a worker type with its workers' options.
type workerType struct {
	name       string
	interval   time.Duration
	tieBreak   string
	priorities [perType]int
	// control is the index of the worker that is stopped and cut off, but never
	// killed, or -1.
	control  int
	flags    []string // more flags of leasectl run
	behavior string   // of its commands
	command  string   // the program; empty: this one
	under    []string // start leasectl under this program
}

// workerTypes are the worker types of a run. Their slots are of different length, so
// that a long run has many slots, and faults meet all phases of each.
var workerTypes = []workerType{
	{name: "alpha", interval: time.Second, tieBreak: "sticky", priorities: [perType]int{0, 0, 1}, control: -1},
	{name: "beta", interval: 2 * time.Second, tieBreak: "rotate", priorities: [perType]int{0, 1, 1}, control: 2},
	{name: "gamma", interval: 3 * time.Second, tieBreak: "random", priorities: [perType]int{0, 1, 2}, control: -1},
}

// cycle is a multiple of all intervals.
const cycle = 6 * time.Second

// slower is by how much all that is longer on a store.
func slower(store string) time.Duration { return time.Duration(max(serverStores[store].slower, 1)) }

// typesOn are the worker types of a run on a store.
func typesOn(store string) []workerType {
	all := slices.Clone(workerTypes)
	for i := range all {
		all[i].interval *= slower(store)
	}
	return all
}

// margin is how long before the end of its lease a command must be gone. It is more
// than leasectl's own choice for slots of this length: runs share their machine
// with others, and a guard that gets no processor can't kill.
const margin = 100 * time.Millisecond

// grace is how long a command has between SIGTERM and SIGKILL.
const grace = 100 * time.Millisecond

// instance is the label of a worker: alpha-0.
func (t workerType) instance(i int) string { return fmt.Sprintf("%s-%d", t.name, i) }

// arguments are those of leasectl for a worker.
func (t workerType) arguments(i int, store, program string) []string {
	args := []string{
		"run", "--store", store, "--worker-type", t.name, "--instance-id", t.instance(i), "--every", t.interval.String(),
		"--priority", strconv.Itoa(t.priorities[i]), "--tie-break", t.tieBreak, "--margin", margin.String(), "--stop-grace", grace.String(),
		"--log-format", "json", "--log-level", "debug", "--tether",
	}
	return append(append(args, t.flags...), "--", cmp.Or(t.command, program), workCommand)
}
