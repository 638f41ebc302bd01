package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"

	"github.com/slotlease/slotlease/workerlease"
)

// witness is told what happens to a worker, and tells the command and the journal. It
// sums what the store charges.
type witness struct {
	journal

	extended func(workerlease.Lease)

	mu  sync.Mutex
	sum workerlease.Charges
}

// Observe takes in what happened. The command comes first: a journal that is read
// slowly must not cost it its lease.
func (w *witness) Observe(e workerlease.Event) {
	switch e := e.(type) {
	case workerlease.Extended:
		w.extended(e.Lease)
	case workerlease.Charged:
		w.charge(e)
	}
	w.journal.Observe(e)
}

func (w *witness) charge(e workerlease.Charged) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sum == nil {
		w.sum = workerlease.Charges{}
	}
	w.sum[e.Operation] += e.Units
}

// charges are the sums so far; nil if the store charges nothing.
func (w *witness) charges() workerlease.Charges {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.sum)
}

// ownLabel is the label of a worker that was given none: host-pid-xxxx.
func ownLabel() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%s-%d-%s", strings.ToValidUTF8(host[:min(len(host), 200)], ""), os.Getpid(), hex.EncodeToString(b[:]))
}
