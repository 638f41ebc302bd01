//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// said is one line of a leasectl's log.
type said struct {
	boot    time.Duration
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
	// SlotStart is the slot of the line, if any.
	SlotStart time.Time `json:"slotStart"`
	Why       string    `json:"why"`
	Err       string    `json:"error"`
	// Reason is that of the end of a command.
	Reason string `json:"reason"`
	Token  int64  `json:"token"`
	// Uncertainty is that of a clock sample.
	Uncertainty string `json:"uncertainty"`
}

// history is the run of one worker.
type history struct {
	name  string
	lives []life
}

// readyMessage begins the message of a leasectl that knows the store's time.
const readyMessage = "ready"

// from is when the worker could claim; endless if it never could.
func (l life) from() time.Duration {
	if l.ready == 0 {
		return endless
	}
	return l.ready
}

// until is when the worker could claim no more.
func (l life) until() time.Duration {
	switch {
	case l.struck != 0:
		return l.struck
	case l.ended != 0:
		return l.ended
	}
	return endless
}

// readHistory reads the logs of a worker's processes. zero is the wall time at 0 of the
// boot clock.
func readHistory(w *worker, zero time.Time) history {
	h := history{name: w.name()}
	for _, each := range w.lives {
		l := *each
		for text := range bytes.Lines(l.text()) {
			var s said
			if json.Unmarshal(text, &s) != nil || s.Message == "" {
				continue // of the command, or of a dump
			}
			s.boot = s.Time.Sub(zero)
			if l.ready == 0 && strings.HasPrefix(s.Message, readyMessage) {
				l.ready = s.boot
			}
			l.said = append(l.said, s)
		}
		h.lives = append(h.lives, l)
	}
	return h
}

// about are the lines of a worker about a slot.
func (h history) about(slot time.Time) (lines []said) {
	for _, l := range h.lives {
		for _, s := range l.said {
			if s.SlotStart.Equal(slot) {
				lines = append(lines, s)
			}
		}
	}
	return lines
}

// archive moves old records out of a ledger during a run, and keeps them for the
// verdict. The test server for MongoDB reads a whole collection to find its newest
// record: after some hundreds of slots no worker would get its turn in time. (leasectl
// trims, too, but not before two hours.)
type archive struct {
	records map[int64]store.Record
	wrong   []string
}

// rested is how long before the newest record a window must have ended for its
// record to be taken out. No fault holds an append back for nearly as long, so
// that none can come when its key is free again.
const rested = 90 * time.Second

// shorten moves old records out of the ledger. What fails under a fault is done the
// next time.
func (a *archive) shorten(ctx context.Context, l store.Ledger, workerType string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	records, _, err := l.Tail(ctx, workerType, allRecords)
	if err != nil {
		return
	}
	a.take(records)
	if before := oldBelow(records); before > 0 {
		_, _ = l.Trim(ctx, workerType, before)
	}
}

// oldBelow is the Seq below which all is old, newest record first, or 0.
func oldBelow(records []store.Record) int64 {
	for _, r := range records {
		if r.WindowEnd.Before(records[0].WindowStart.Add(-rested)) {
			return r.Seq + 1
		}
	}
	return 0
}

// take keeps records. A key holds one record forever, even when it was taken out.
func (a *archive) take(records []store.Record) {
	if a.records == nil {
		a.records = map[int64]store.Record{}
	}
	for _, r := range records {
		if old, ok := a.records[r.Seq]; ok && old != r {
			a.wrong = append(a.wrong, fmt.Sprintf("%s: record %d was %+v, and is now %+v", r.WorkerType, r.Seq, old, r))
			continue
		}
		a.records[r.Seq] = r
	}
}

// all are the records that were taken out and those in the ledger now, the oldest first.
func (a *archive) all(now []store.Record) []store.Record {
	a.take(now)
	return slices.SortedFunc(maps.Values(a.records), func(x, y store.Record) int { return cmp.Compare(x.Seq, y.Seq) })
}
