//go:build unix && !aix

package guard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// The files of the guard process, besides its own null standard files.
const (
	fdOrders  = 3
	fdReports = 4
	fdStdin   = 5
	fdStdout  = 6
	fdStderr  = 7
)

// marker is the whole argument list of a guard process, so that it shows in a
// process listing, and nothing need be removed from the command's environment. It
// doesn't have the program's name: killing all processes of that name leaves the guard,
// which kills the command.
const marker = "lease guard"

// verb is what an order asks of the guard.
type verb int

const (
	runVerb verb = iota + 1
	stopVerb
	extendVerb
	killVerb
	signalVerb
)

// order goes from the program to the guard. The first one, and no other, is to
// run. gob carries it since arguments and environment may be any bytes, which
// JSON strings may not.
type order struct {
	Verb     verb
	Deadline time.Duration
	// Notice belongs to runVerb and extendVerb, Signal to signalVerb, the rest to runVerb.
	Notice time.Duration
	Signal syscall.Signal
	Grace  time.Duration
	Path   string
	Argv   []string
	Env    []string
	Dir    string
	User   *User
}

// report goes from the guard to the program: PID once the command runs, then
// Ended; or only Failure, or only TooLate.
type report struct {
	PID int
	// Cgroup is the directory of the command's cgroup, or empty. It belongs to PID.
	Cgroup  cgroup
	TooLate bool
	Failure string
	Errno   syscall.Errno
	Ended   bool
	Status  Status
	// From and Gone are the instants of Boottime at which the guard began to
	// kill and saw that nothing was left.
	From, Gone time.Duration
	Survivors  survivors
}

// survivors are processes that may still run although all should be gone.
type survivors struct {
	PIDs []int
	// Unseen is set when there are, or may be, some without a number: /proc hides them.
	Unseen bool
}

// error is nil if there are none, and wraps [ErrSurvivors] otherwise.
func (s survivors) error() error {
	switch {
	case len(s.PIDs) > 0 && s.Unseen:
		return fmt.Errorf("%w: pid %v: not permitted, and others that /proc hides", ErrSurvivors, s.PIDs)
	case len(s.PIDs) > 0:
		return fmt.Errorf("%w: pid %v: not permitted", ErrSurvivors, s.PIDs)
	case s.Unseen:
		return fmt.Errorf("%w: /proc hides them, or whether there are any", ErrSurvivors)
	}
	return nil
}

// startError is a failure to start a command. It shows its text alone, and
// unwraps to its kind.
type startError struct {
	text string
	kind error
}

func (e *startError) Error() string { return e.text }
func (e *startError) Unwrap() error { return e.kind }

// failure turns a report of failure into an error; nil if it is none.
func (r report) failure() error {
	switch {
	case r.TooLate:
		return ErrTooLate
	case r.Failure != "" && r.Errno != 0:
		return &startError{r.Failure, r.Errno}
	case r.Failure != "":
		return errors.New(r.Failure)
	}
	return nil
}

// order checks the command and returns the order to run it.
func (c Command) order() (order, error) {
	var errs []error
	path := c.Path
	switch {
	case path == "":
		errs = append(errs, errors.New("no command given"))
	case filepath.Base(path) == path:
		found, err := Find(path, c.Env)
		if err != nil {
			var lookup *exec.Error
			if errors.As(err, &lookup) {
				err = lookup.Err
			}
			errs = append(errs, err)
		}
		path = found
	}
	if c.Grace < 0 {
		errs = append(errs, fmt.Errorf("grace %v is negative", c.Grace))
	}
	if c.Notice != 0 && (c.Notice < 0 || c.Notice > c.Grace) {
		errs = append(errs, fmt.Errorf("notice %v is not between 0 and the grace %v", c.Notice, c.Grace))
	}
	if c.Deadline <= 0 {
		errs = append(errs, fmt.Errorf("deadline %v is not an instant of Boottime", c.Deadline))
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	return order{
		Verb: runVerb, Deadline: c.Deadline, Notice: cmp.Or(c.Notice, c.Grace), Grace: c.Grace,
		Path: path, Argv: append([]string{c.Path}, c.Args...), Env: env, Dir: c.Dir, User: c.User,
	}, errors.Join(errs...)
}
