package supervise

import (
	"io"
	"os"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/workerlease"
)

// Command is the command to run, and how.
type Command struct {
	Name string
	Args []string
	// Env is its environment, to which that of the lease is added.
	Env []string
	// Stdin is its standard input: none if nil, or a terminal.
	Stdin *os.File
	// Stdout and Stderr get its output.
	Stdout, Stderr io.Writer
	// Grace is the time between SIGTERM and SIGKILL. Default: a twentieth of the lease, or
	// of FailoverWithin, at most 5 s.
	Grace time.Duration
	// Urgent is closed when the command must be killed without a grace.
	Urgent <-chan struct{}
	// Roster lets the worker say in the ledger's roster what it does.
	Roster bool
	// Began gets the worker when it has begun. Once doesn't call it. Default: nobody.
	Began func(*workerlease.WorkerLease)
	// Observer gets every event, after the command and the log. Default: none.
	Observer workerlease.Observer
	// Log gets what happens.
	Log *runlog.Log
}
