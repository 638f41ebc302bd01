//go:build linux

package main

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// kind is a kind of fault.
type kind string

// The faults.
const (
	killLeasectl kind = "kill leasectl"
	endLeasectl  kind = "SIGTERM to leasectl"
	killGuard    kind = "kill the guard"
	killCommand  kind = "kill the command"
	stopLeasectl kind = "stop leasectl"
	stopGuard    kind = "stop the guard"
	stopCommand  kind = "stop the command"
	stopBoth     kind = "stop leasectl and the guard"
	stopTree     kind = "stop leasectl, guard and all below"
	killAbove    kind = "kill leasectl above a stopped guard"
	killCrowd    kind = "kill a whole worker type"
	stopCrowd    kind = "stop a whole worker type"

	netLatency   kind = "network: latency"
	netBlackhole kind = "network: blackhole"
	netReset     kind = "network: resets"
	netDown      kind = "network: refused"
	killServer   kind = "kill the server"
	stopServer   kind = "pause the server"

	dumpStacks kind = "dump" // of the control worker, at the end

	lockFile   kind = "hold the write lock"
	killWriter kind = "kill a writer in its transaction"
)

// choice is a kind of fault, its frequency, and its duration.
type choice struct {
	kind        kind
	weight      int
	least, most time.Duration
}

const ms = time.Millisecond

// processFaults strike leasectl and the processes below it.
var processFaults = []choice{
	{killLeasectl, 16, 200 * ms, 4 * time.Second}, // until it is started again
	{endLeasectl, 8, 200 * ms, 3 * time.Second},   // the same
	{killGuard, 6, 0, 0},
	{killCommand, 4, 0, 0},
	{stopLeasectl, 14, 100 * ms, 20 * time.Second},
	{stopGuard, 10, 100 * ms, 20 * time.Second},
	{stopCommand, 8, 100 * ms, 20 * time.Second},
	{stopBoth, 8, 300 * ms, 12 * time.Second},
	{stopTree, 6, 100 * ms, 12 * time.Second},
	{killAbove, 5, 300 * ms, 5 * time.Second},
	{killCrowd, 2, 200 * ms, 3 * time.Second},
	{stopCrowd, 2, 100 * ms, 5 * time.Second},
}

// serverFaults strike a server, or the way to it.
var serverFaults = []choice{
	{netLatency, 8, 200 * ms, 8 * time.Second},
	{netBlackhole, 8, 200 * ms, 6 * time.Second},
	{netReset, 8, 100 * ms, 4 * time.Second},
	{netDown, 8, 100 * ms, 5 * time.Second},
	{killServer, 4, 200 * ms, 4 * time.Second},
	{stopServer, 4, 200 * ms, 6 * time.Second},
}

// fileFaults strike a SQLite file.
var fileFaults = []choice{
	{lockFile, 14, 100 * ms, 6 * time.Second},
	{killWriter, 8, 0, 500 * ms},
}

// storeFaults are those of each store.
var storeFaults = func() map[string][]choice {
	all := map[string][]choice{"sqlite": fileFaults}
	for name := range serverStores {
		all[name] = serverFaults
	}
	return all
}()

// storeNames lists the stores, in order.
func storeNames() string { return strings.Join(slices.Sorted(maps.Keys(storeFaults)), ", ") }

// fault is one fault as planned.
type fault struct {
	At   time.Duration // from the start of the run
	Kind kind
	// Type and Worker are indexes. Faults of guards and commands strike the holder of
	// the type; the others do if Holder is set.
	Type, Worker int
	Holder       bool
	Crowd        bool // a fault of the network strikes all connections
	For          time.Duration
	Delay        time.Duration // latency, in faults of that kind
}

// gap is the average time from one fault to the next.
const gap = 1300 * ms

// plan draws the faults of a run, in the order of their time. It begins on a
// boundary of all schedules, and every other fault is aimed at the moments around
// one: claims, the end of a command, the start of the next.
func plan(seed uint64, store string, duration time.Duration, workerTypes []workerType) []fault {
	choices := slices.Concat(processFaults, storeFaults[store])
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	random := rand.New(rand.NewPCG(seed, 0x736c6f74))
	var faults []fault
	for at := gap / 2; at < duration; at += gap/4 + time.Duration(random.Int64N(int64(gap*3/2))) {
		n, chosen := random.IntN(total), choice{}
		for _, c := range choices {
			if n -= c.weight; n < 0 {
				chosen = c
				break
			}
		}
		f := fault{
			At: at, Kind: chosen.kind,
			Type: random.IntN(len(workerTypes)), Worker: random.IntN(perType), Holder: random.IntN(3) > 0, Crowd: random.IntN(4) == 0,
			For: between(random, chosen.least, chosen.most), Delay: between(random, 20*ms, 1500*ms),
		}
		interval := workerTypes[f.Type].interval
		aim := at.Truncate(interval) + interval*9/10 - interval/4 + time.Duration(random.Int64N(int64(interval*2/5)))
		if random.IntN(2) == 0 && aim < duration {
			f.At = aim
		}
		faults = append(faults, f)
	}
	slices.SortStableFunc(faults, func(a, b fault) int { return cmp.Compare(a.At, b.At) })
	return faults
}

// between draws a duration, each order of magnitude as often as another.
func between(random *rand.Rand, least, most time.Duration) time.Duration {
	draw := random.Float64()
	if least <= 0 {
		return time.Duration(draw * float64(most))
	}
	return time.Duration(float64(least) * math.Pow(float64(most)/float64(least), draw)).Truncate(ms)
}
