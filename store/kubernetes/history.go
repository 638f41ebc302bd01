package kubernetes

import (
	"strconv"
	"sync"
)

// history notices that a cluster was restored from a backup: its resource versions, which are the revisions of the etcd below
// and only grow, fall back.
type history struct {
	mu sync.Mutex
	// highest is the highest resource version of a reply, and from the one to which they have fallen last.
	highest, from uint64
}

// seen is the highest resource version so far.
func (h *history) seen() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.highest
}

// follow takes in the resource version of a reply that shows the newest state, to a request before which one was the highest.
func (h *history) follow(before uint64, version string) {
	now, err := strconv.ParseUint(version, 10, 64)
	if err != nil || now == 0 {
		return // A dry run has none.
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if now < before {
		h.highest, h.from = now, now
	}
	h.highest = max(h.highest, now)
}

// name is that of the line of changes.
func (h *history) name() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return "from resource version " + strconv.FormatUint(h.from, 10)
}
