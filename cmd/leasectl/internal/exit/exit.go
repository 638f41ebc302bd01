// Package exit has leasectl's exit codes, and the error that carries one.
package exit

import (
	"errors"
	"fmt"
)

// The exit codes. They are documented in the command's documentation and by
// "leasectl help exit-codes", and don't change.
const (
	OK          = 0
	Failure     = 1
	Usage       = 2
	Unreachable = 3
	Refused     = 4
	Denied      = 5
	Missing     = 6
	Command     = 7
	Demo        = 8
	Survivors   = 9
	Unallocated = 10
	Unsound     = 11
	TooSoon     = 12
	GivenUp     = 13
	Missed      = 14
	Interrupted = 130
	Unread      = 141
)

// Codes lists them for the help.
const Codes = `  0    success; for run: stopped cleanly; run --once has the code of its command
  1    another failure
  2    usage: a bad option or argument, or something not supported
  3    the store can't be reached, or an operation on it failed
  4    the store is refused: not a ledger, or it can't keep a ledger's promises
  5    access denied
  6    the ledger is not initialised or was removed, or its directory is missing
  7    the command can't be run, or can't be guarded here
  8    the demo found something that is not as it should be
  9    processes of the command could not be killed: the lease was not released
  10   run --once: another worker has the slot, and had not done it in time
  11   verify or doctor found a fault; version --check another version, or no whole list
  12   run --once: an attempt has failed, and the next one may not begin in time
  13   run --once: the slot is given up: all its --max-attempts have failed
  14   run --once: the slot was missed, skipped or is paused: nobody may begin it
  130  interrupted
  141  nobody reads the output any more, as in a pipe to head
`

// Error is one or more problems with the exit code that they lead to.
type Error struct {
	Problems []error
	Code     int
	// Try is what the user may do about it, or empty.
	Try string
}

func (e *Error) Error() string {
	if len(e.Problems) == 0 {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return errors.Join(e.Problems...).Error()
}

func (e *Error) Unwrap() []error { return e.Problems }

// Quiet is an error that needs no message: it was reported already, or is that of a command. It is nil for 0.
func Quiet(code int) error {
	if code == OK {
		return nil
	}
	return &Error{Code: code}
}

// With is an error of one problem.
func With(code int, problem error) *Error {
	return &Error{Problems: []error{problem}, Code: code}
}

// BadUsage is the error of a command that can't be done as it was written.
func BadUsage(try string, problems ...error) *Error {
	return &Error{Problems: problems, Code: Usage, Try: try}
}

// Join is one error of several, with the problems of all that aren't nil, or nil if all are. Its code and
// what to try are those of the first that has a code.
func Join(errs ...error) error {
	var joined *Error
	var problems []error
	for _, err := range errs {
		e, own := errors.AsType[*Error](err)
		switch {
		case err == nil:
			continue
		case own:
			problems = append(problems, e.Problems...)
		default:
			problems = append(problems, err)
		}
		if own && joined == nil {
			joined = &Error{Code: e.Code, Try: e.Try}
		}
	}
	switch {
	case len(problems) == 0 && joined == nil:
		return nil
	case joined == nil:
		joined = &Error{Code: Failure}
	}
	joined.Problems = problems
	return joined
}
