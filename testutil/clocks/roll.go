package clocks

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/slotlease/slotlease/workerlease/event"
)

// roll observes a client, to report the last action of each of its workers if the client
// doesn't settle.
type roll struct {
	next event.Observer

	mu   sync.Mutex
	last map[event.Worker]string
}

// Observe notes an event.
func (r *roll) Observe(e event.Event) {
	note := ""
	switch e := e.(type) {
	case event.Allocated:
		note = fmt.Sprintf("LeaseAllocated was called for slot %s; it must return, or ask for its context's Done channel", e.Lease.Slot)
	case event.Expired:
		note = fmt.Sprintf("the lease of slot %s is over (%s); LeaseAllocated and LeaseExpired must return", e.Lease.Slot, e.Why)
	case event.Claimed:
		note = fmt.Sprintf("slot %s was won", e.Slot)
	case event.Lost:
		note = fmt.Sprintf("slot %s was lost to %s", e.Slot, e.Holder.InstanceID)
	}
	if note != "" {
		r.mu.Lock()
		if r.last == nil {
			r.last = map[event.Worker]string{}
		}
		r.last[e.Of()] = note
		r.mu.Unlock()
	}
	if r.next != nil {
		r.next.Observe(e)
	}
}

// trouble describes what may keep a client from settling.
func (r *roll) trouble() string {
	var b strings.Builder
	if r == nil {
		b.WriteString("a client that hasn't settled")
	} else {
		b.WriteString("a client that hasn't settled, with these workers:")
		r.mu.Lock()
		for _, w := range slices.SortedFunc(maps.Keys(r.last), byName) {
			fmt.Fprintf(&b, "\n  %s (%s): %s", w.WorkerType, w.InstanceID, r.last[w])
		}
		if len(r.last) == 0 {
			b.WriteString("\n  none of them has won or lost a slot yet")
		}
		r.mu.Unlock()
	}
	if s := stacks(); s != "" {
		b.WriteString("\ncallbacks and ledger operations that have not returned:\n\n")
		b.WriteString(s)
	}
	return b.String()
}

func byName(a, b event.Worker) int {
	return cmp.Or(cmp.Compare(a.WorkerType, b.WorkerType), cmp.Compare(a.InstanceID, b.InstanceID))
}

// stacks are those of the goroutines that run callbacks or ledger operations.
func stacks() string {
	buffer := make([]byte, 1<<20)
	buffer = buffer[:runtime.Stack(buffer, true)]
	all := bytes.Split(buffer, []byte("\n\n"))
	const perform = "created by github.com/slotlease/slotlease/workerlease.(*WorkerLease)."
	all = slices.DeleteFunc(all, func(s []byte) bool { return !bytes.Contains(s, []byte(perform)) })
	return string(bytes.Join(all, []byte("\n\n")))
}
