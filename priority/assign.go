package priority

import (
	"hash/fnv"
	"maps"
	"slices"
)

// Assign gives each worker type to one of its candidates, so that no candidate gets more than one
// type more than another, if all are candidates for all types; else it comes as near to that as is simple.
// All who know the same candidates come to the same result, whatever the order in which they know them. When
// a candidate comes or goes, most types stay where they are: each type ranks the candidates in its own way
// (rendezvous hashing, Thaler and Ravishankar 1998), and goes to the first that is not full. A type without
// candidates gets none.
func Assign(candidates map[string][]string) map[string]string {
	members := map[string]bool{}
	for _, of := range candidates {
		for _, c := range of {
			members[c] = true
		}
	}
	n := max(len(members), 1)
	share, more := len(candidates)/n, len(candidates)%n // so many candidates get one more than share
	load, to := map[string]int{}, map[string]string{}
	for _, workerType := range slices.Sorted(maps.Keys(candidates)) {
		best, free := "", false
		for _, c := range candidates[workerType] {
			takes := load[c] < share || load[c] == share && more > 0
			var better bool
			switch {
			case best == "" || takes != free:
				better = best == "" || takes
			case takes:
				better = prefers(workerType, c, best)
			default:
				better = load[c] < load[best] || load[c] == load[best] && prefers(workerType, c, best)
			}
			if better {
				best, free = c, takes
			}
		}
		if best == "" {
			continue
		}
		if free && load[best] == share {
			more--
		}
		load[best]++
		to[workerType] = best
	}
	return to
}

// prefers reports that a worker type is rather for a than for b.
func prefers(workerType, a, b string) bool {
	if x, y := weight(workerType, a), weight(workerType, b); x != y {
		return x > y
	}
	return a < b
}

// weight is evenly distributed, whatever the names are.
func weight(workerType, candidate string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(workerType))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(candidate))
	x := h.Sum64()
	// The finaliser of MurmurHash3 (Appleby): FNV alone leaves names that differ at their ends close together.
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
