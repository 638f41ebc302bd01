package supervise

import (
	"io"
	"os"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/transcript"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Command is the command to run, and how.
type Command struct {
	Name string
	Args []string
	// Env is its environment, to which that of the lease is added.
	Env []string
	// Dir is where it runs. Default: the directory of this process.
	Dir string
	// User is by whom it runs. Default: by the user of this process.
	User *guard.User
	// Stdin is its standard input: none if nil, or a terminal.
	Stdin *os.File
	// Input is a text for its standard input in place of Stdin. Default: none.
	Input string
	// Stdout and Stderr get its output.
	Stdout, Stderr io.Writer
	// Label, where the outputs aren't files, begins each line of them, and whole lines are passed on. Default: the output is
	// passed on as it comes.
	Label string
	// Output, unless it is nil, gets the output, too, and what it keeps of a run is told with its outcome.
	Output *transcript.Transcript
	// Grace is the time between SIGTERM and SIGKILL. Default: a twentieth of the lease, or
	// of FailoverWithin, at most 5 s.
	Grace time.Duration
	// OnExit is what follows the end of a command that is no job.
	OnExit OnExit
	// Urgent is closed when the command must be killed without a grace.
	Urgent <-chan struct{}
	// Hurry is closed when a run is to be stopped that was let go on for Options.DrainTimeout. Default: that ends by itself.
	Hurry <-chan struct{}
	// Signals are passed on to the command, and dropped while none runs.
	Signals <-chan os.Signal
	// Roster lets the worker say in the ledger's roster what it does.
	Roster bool
	// Began gets the worker when it has begun. Once doesn't call it. Default: nobody.
	Began func(*workerlease.WorkerLease)
	// Ended is called when the worker has ended. Once doesn't call it. Default: nothing is.
	Ended func()
	// Observer gets every event, after the command and the log. Default: none.
	Observer event.Observer
	// Log gets what happens.
	Log *runlog.Log
}
