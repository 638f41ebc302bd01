package storekit

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Ahead is how far a server's clock is ahead of the local one, within bounds: it was read between a request and its reply.
type Ahead struct{ Least, Most time.Duration }

// And is what two readings of one clock say together.
func (a Ahead) And(b Ahead) Ahead { return Ahead{max(a.Least, b.Least), min(a.Most, b.Most)} }

// Distance is how far the clocks of a store's servers are apart.
type Distance struct {
	// Least is how far they are apart surely, and Most at most. Fast is furthest ahead, of Slow.
	Least, Most time.Duration
	Fast, Slow  string
}

// Apart compares the clocks of servers by their names.
func Apart(known map[string]Ahead) (d Distance) {
	names := slices.Sorted(maps.Keys(known))
	known = maps.Clone(known)
	for name, a := range known { // One that was set between two readings is somewhere in between.
		known[name] = Ahead{min(a.Least, a.Most), max(a.Least, a.Most)}
	}
	for _, a := range names {
		for _, b := range names {
			if a == b {
				continue
			}
			if least := known[a].Least - known[b].Most; least > d.Least {
				d.Least, d.Fast, d.Slow = least, a, b
			}
			d.Most = max(d.Most, known[a].Most-known[b].Least)
		}
	}
	return d
}

// Keep returns what an earlier comparison has found, if one of its two servers is silent now: that is taken to be where it was.
func (d Distance) Keep(old Distance, silent []string) Distance {
	if old.Least > d.Least && (slices.Contains(silent, old.Fast) || slices.Contains(silent, old.Slow)) {
		return old
	}
	return d
}

// Skew is that of stamps: what is assumed or, if the clocks are surely further apart than that, how far they are at most.
func (d Distance) Skew(assumed time.Duration) time.Duration {
	if d.Least > assumed {
		return d.Most
	}
	return assumed
}

// Exceeds says that clocks are surely further apart than is assumed; it is empty if they needn't be.
func (d Distance) Exceeds(assumed time.Duration) string {
	if d.Least <= assumed {
		return ""
	}
	return fmt.Sprintf("the clock of %s is ahead of that of %s by %v to %v, and %v are assumed (serverSkew)",
		d.Fast, d.Slow, d.Least.Round(time.Millisecond), d.Most.Round(time.Millisecond), assumed)
}

// SetClocks is what to do about clocks that are too far apart.
const SetClocks = "synchronise the servers' clocks; until then time is as uncertain as that, and parts of slots are lost"
