package guard

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// The errors of this package, wrapped with the command. Match them with
// errors.Is. A command that isn't there is [exec.ErrNotFound] (no such name in
// PATH) or [fs.ErrNotExist]; one that can't be executed is [fs.ErrPermission] or
// another system error.
var (
	// ErrTooLate: the deadline has passed, or less than the grace is left.
	// Nothing was started.
	ErrTooLate = errors.New("too late to start")
	// ErrUnsaid: the deadline passed before the guard knew, or had said, that the command runs. It
	// may have begun. It was killed.
	ErrUnsaid = errors.New("killed before it was known to run")
	// ErrGuardDied: the guard ended without a report, so that the exit status
	// of the command is unknown. Whatever could be found was killed.
	ErrGuardDied = errors.New("guard died")
	// ErrSurvivors: the system refused to let us kill some descendants, for
	// instance of sudo, and they are still running; or nothing proves that those which
	// /proc hides are gone.
	ErrSurvivors = errors.New("processes could not be killed")
	// ErrUnsupported: this operating system can't keep the promise.
	ErrUnsupported = errors.New("running a command under a lease needs Linux or another Unix")
)

// BackUpAfter is how long after the deadline a program kills what its guard hasn't. The deadline must be that much, and the time
// that killing takes, before the last safe moment.
const BackUpAfter = 50 * time.Millisecond

// Command is what to run and until when.
type Command struct {
	// Path is the program: a path, relative to Dir if it isn't absolute, or a
	// bare name that is looked up in the PATH of this process.
	Path string
	// Args are the arguments after the program's name.
	Args []string
	// Env is the whole environment. Nil means that of this process; the guard
	// adds nothing to it.
	Env []string
	// Dir is the working directory; empty means that of this process.
	Dir string
	// User is by whom the command runs; nil means by the user of this process. Another one takes the rights of root. The
	// guard stays what it is, so that it may kill the command.
	User *User
	// Stdin, Stdout and Stderr are passed on as they are; nil means the null
	// device, and so does a terminal as Stdin. They stay the caller's to close.
	Stdin, Stdout, Stderr *os.File
	// Deadline is the instant of [Boottime] at which everything is killed.
	Deadline time.Duration
	// Grace is how long before the deadline, and how long at most after Stop,
	// the command has between SIGTERM and SIGKILL. Zero means no SIGTERM at
	// all; negative is an error.
	Grace time.Duration
	// Notice, if it isn't zero, is how long before the deadline SIGTERM comes
	// instead: for a deadline that may yet be moved by Extend. Negative or more than
	// Grace is an error.
	Notice time.Duration
}

// User are the rights of a user, by numbers.
type User struct {
	UID, GID uint32
	Groups   []uint32 // all of them
}

// Reason is why a command ended.
type Reason int

// The reasons, in no order.
const (
	// Exited: it ended by itself, or somebody else killed it.
	Exited Reason = iota + 1
	// Stopped: Stop was asked for, or the guard was sent a signal to end.
	Stopped
	// DeadlineReached: the deadline, or the grace before it, had come.
	DeadlineReached
	// Killed: Kill was asked for.
	Killed
	// ParentGone: the program that started it died. Only the guard's exit status still
	// shows it.
	ParentGone
	// GuardDied: the guard was killed.
	GuardDied
)

// String returns the reason as the end of a sentence about the command.
func (r Reason) String() string {
	switch r {
	case Exited:
		return "ended by itself"
	case Stopped:
		return "stopped on request"
	case DeadlineReached:
		return "stopped at the deadline"
	case Killed:
		return "killed on request"
	case ParentGone:
		return "killed because its starter is gone"
	case GuardDied:
		return "killed because its guard died"
	}
	return fmt.Sprintf("ended for unknown reason %d", int(r))
}

// Status is how a command ended.
type Status struct {
	// Code is the exit code; −1 if a signal ended the command.
	Code int
	// Signal is the signal that ended the command, or 0. After a SIGTERM it
	// may still be 0: the command saw it and exited in its own way.
	Signal syscall.Signal
	// Reason is why it ended.
	Reason Reason
}

// ExitCode returns the status as shells report it: the exit code, or 128 plus
// the number of the signal.
func (s Status) ExitCode() int {
	if s.Signal != 0 {
		return 128 + int(s.Signal)
	}
	return s.Code
}

// String describes the status for a log line.
func (s Status) String() string { return s.With(s.Reason.String()) }

// With describes the status with another reason, of one who knows more of it.
func (s Status) With(reason string) string {
	if s.Signal != 0 {
		return fmt.Sprintf("signal %d (%v), %s", int(s.Signal), s.Signal, reason)
	}
	return fmt.Sprintf("exit code %d, %s", s.Code, reason)
}
