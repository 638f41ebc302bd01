package workerlease

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/store"
)

// Policy decides the priority by which a worker claims, 0 to 7, and says why in a few words for those who
// look. own is what the worker says of itself, and present all workers that are there, of all worker types,
// itself included. Priorities beyond the bounds count as the nearest, and a panic as the worker's own. It is
// called on its own goroutine, before claims open and up to once a second, and must return quickly: the client's roster
// waits for it. After a second the worker's own priority counts, the event Stuck reports it, and it is not called again before it has returned.
//
// The others may be shown as they were up to a slot ago, or not at all, so workers may decide differently. That
// changes the order of claims, and nothing else.
type Policy func(own store.Presence, present []store.Presence) (priority int, why string)

// PreferLabel lets workers go first whose label (see Options.Labels) has a value, such as those of a region. The
// others claim by the next lower priority.
func PreferLabel(name, value string) Policy {
	return func(own store.Presence, _ []store.Presence) (int, string) {
		if own.Labels[name] == value {
			return own.Priority, fmt.Sprintf("%s is %s", name, value)
		}
		return own.Priority + 1, fmt.Sprintf("%s is not %s", name, value)
	}
}

// OldestVersion lets workers go first whose label has the lowest version of those that are there for the
// worker type, as while a new version is rolled out. The others claim by the next lower priority. Versions
// are compared piece by piece, numbers as numbers: 1.9 is lower than 1.10. Workers without the label don't count.
func OldestVersion(label string) Policy {
	return func(own store.Presence, present []store.Presence) (int, string) {
		for _, p := range present {
			if v := p.Labels[label]; p.WorkerType == own.WorkerType && v != "" && lowerVersion(v, own.Labels[label]) {
				return own.Priority + 1, fmt.Sprintf("%s has version %s", p.InstanceID, v)
			}
		}
		return own.Priority, "the oldest version"
	}
}

// FewestLeases lets clients that hold fewer leases than others go first: worker types then spread over them.
// A worker whose client holds more than its share claims by the next lower priority, in as many worker types as
// it has too many. The share is that of all leases held, of clients that have a worker for the type, and leases
// of other types count, too. priority.Spread finds an even distribution sooner, where clients have the same types.
func FewestLeases() Policy {
	return func(own store.Presence, present []store.Presence) (int, string) {
		there, sum := map[string]bool{}, 0
		var held []string // the types whose leases the own client holds
		for _, p := range present {
			if p.WorkerType == own.WorkerType {
				there[p.Client] = true
			}
		}
		for _, p := range present {
			if p.Phase != store.PhaseHolder || !there[p.Client] {
				continue
			}
			sum++
			if p.Client == own.Client {
				held = append(held, p.WorkerType)
			}
		}
		slices.Sort(held)
		share := (sum + len(there) - 1) / max(len(there), 1)
		at := slices.Index(held, own.WorkerType)
		if at < 0 {
			at = len(held)
		}
		why := fmt.Sprintf("holds %d leases, with a share of %d", len(held), share)
		if sum > 0 && at >= share {
			return own.Priority + 1, why
		}
		return own.Priority, why
	}
}

// lowerVersion reports that a version is lower than another; the empty one is the highest.
func lowerVersion(a, b string) bool {
	if b == "" {
		return a != ""
	}
	x, y := pieces.FindAllString(strings.TrimPrefix(a, "v"), -1), pieces.FindAllString(strings.TrimPrefix(b, "v"), -1)
	for i := range min(len(x), len(y)) {
		n, errN := strconv.ParseUint(x[i], 10, 64)
		m, errM := strconv.ParseUint(y[i], 10, 64)
		switch {
		case errN == nil && errM == nil && n != m:
			return n < m
		case (errN != nil || errM != nil) && x[i] != y[i]:
			return x[i] < y[i]
		}
	}
	return len(x) < len(y)
}

// pieces are the runs of digits and of other characters of a version.
var pieces = regexp.MustCompile(`[0-9]+|[^0-9]+`)
