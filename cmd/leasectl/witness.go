package main

import "github.com/slotlease/slotlease/workerlease"

// witness is told what happens to a worker, and tells the command and the journal.
type witness struct {
	journal

	extended func(workerlease.Lease)
}

// Observe takes in what happened. The command comes first: a journal that is read
// slowly must not cost it its lease.
func (w witness) Observe(e workerlease.Event) {
	if e, ok := e.(workerlease.Extended); ok {
		w.extended(e.Lease)
	}
	w.journal.Observe(e)
}
