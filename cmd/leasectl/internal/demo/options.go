package demo

import (
	"io"
	"time"
)

// Options are the options of the demo.
type Options struct {
	Slots    int           // how many to show; at least 6
	Interval time.Duration // the length of the slots
	Keep     bool          // the ledger and the logs
}

// Host is what the demo runs in.
type Host struct {
	Out     io.Writer
	Colours bool
	Env     []string // of the workers
	// Urgent is closed when the workers are to be killed rather than stopped.
	Urgent <-chan struct{}
}

// workerType is the worker type of the demo.
const workerType = "demo"
