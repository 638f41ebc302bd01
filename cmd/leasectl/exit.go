package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/store"
)

// The exit codes. They are documented in the package's documentation and by
// "leasectl help exit-codes", and don't change.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitRefused     = 4
	exitDenied      = 5
	exitMissing     = 6
	exitCommand     = 7
	exitDemo        = 8
	exitInterrupted = 130
)

const exitCodes = `  0    success; for run: stopped cleanly
  1    another failure
  2    usage: a bad option or argument, or something not supported
  3    the store can't be reached, or an operation on it failed
  4    the store is refused: not a ledger, or it can't keep a ledger's promises
  5    access denied
  6    the ledger is not initialised, or its directory is missing
  7    the command can't be run
  8    the demo found something that is not as it should be
  130  interrupted
`

// failure is one or more problems, with the exit code and a hint what to try.
type failure struct {
	problems []error
	code     int
	try      string
}

func (f *failure) Error() string   { return errors.Join(f.problems...).Error() }
func (f *failure) Unwrap() []error { return f.problems }

// failed is a failure of one problem.
func failed(code int, err error) *failure {
	return &failure{problems: []error{err}, code: code}
}

// badUsage is a failure of what was asked for.
func badUsage(try string, problems ...error) error {
	return &failure{problems: problems, code: exitUsage, try: try}
}

// storeFailed is a failure of an operation on a store.
func storeFailed(t target, err error) error {
	if _, known := errors.AsType[*failure](err); known || err == nil {
		return err
	}
	f := failed(exitUnreachable, brief(err))
	switch {
	case errors.Is(err, store.ErrRefused):
		f.code = exitRefused
		f.try, f.problems[0] = t.refusal(err)
	case errors.Is(err, store.ErrDenied) || errors.Is(err, fs.ErrPermission):
		f.code, f.try = exitDenied, t.tryDenied()
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrMissing):
		f.code, f.try = exitMissing, t.tryMissing()
	case errors.Is(err, store.ErrInvalid):
		f.code = exitUsage
	default:
		f.try = t.tryFailed(err)
	}
	return f
}

// commandFailed is a failure to run the user's command at all.
func commandFailed(name string, err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	f := failed(exitCommand, fmt.Errorf("command %q: %w", name, err))
	switch {
	case errors.Is(err, guard.ErrUnsupported):
	case errors.Is(err, exec.ErrNotFound):
		f.try = "name it with its path, or add its directory to PATH"
	case errors.Is(err, fs.ErrPermission):
		f.try = "make it executable: chmod +x"
	}
	return f
}

// report prints an error, one line per problem and one for the hint, and returns
// the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = failed(exitFailure, err)
	}
	for _, p := range f.problems {
		a.errorf("leasectl: %s\n", strings.Join(strings.Fields(printable(a.scrub(p.Error()))), " "))
	}
	if f.try != "" {
		a.errorf("try: %s\n", a.scrub(f.try))
	}
	return f.code
}
