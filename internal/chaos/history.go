//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
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
