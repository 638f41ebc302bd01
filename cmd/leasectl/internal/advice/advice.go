// Package advice turns the errors of stores and commands into those of leasectl:
// with an exit code, and with what the user may try.
package advice

import (
	"cmp"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

// ForStore is the error of an operation on a store, or nil if err is. An error that
// has an exit code already stays as it is.
func ForStore(t storeuri.Target, err error) error {
	if _, known := errors.AsType[*exit.Error](err); known || err == nil {
		return err
	}
	e := exit.With(exit.Unreachable, err)
	switch {
	case errors.Is(err, store.ErrRefused):
		e.Code, e.Try = exit.Refused, store.Remedy(err)
	case errors.Is(err, store.ErrDenied) || errors.Is(err, fs.ErrPermission):
		e.Code, e.Try = exit.Denied, cmp.Or(store.Remedy(err), store.Remedy(store.ErrDenied))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrMissing):
		e.Code, e.Try = exit.Missing, tryMissing(t, err)
	case errors.Is(err, store.ErrInvalid):
		e.Code = exit.Usage
	default:
		e.Try = tryFailed(t, err)
	}
	return e
}

// Patience is how long a store refuses or denies what a worker does, or isn't there, before that ends a
// run: an election or a backup may make it do so for a moment.
const Patience = 10 * time.Second

// Lasting reports whether waiting can't help against an error of a store.
func Lasting(err error) bool {
	return errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrDenied) || errors.Is(err, store.ErrMissing)
}

// Removed reports that a ledger was removed while it was in use. That it is put back doesn't help: others may
// have stored the same leases in another file meanwhile.
func Removed(err error) bool {
	return errors.Is(err, sqlite.ErrUnshared) && errors.Is(err, store.ErrMissing)
}

// ForCommand is the error of a command that can't be run at all.
func ForCommand(name string, err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	e := exit.With(exit.Command, fmt.Errorf("command %q: %w", name, err))
	switch {
	case errors.Is(err, guard.ErrUnsupported):
	case errors.Is(err, exec.ErrNotFound):
		e.Try = "name it with its path, or add its directory to PATH"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		e.Try = "name a file that is there, or a command in PATH without a slash"
	case errors.Is(err, syscall.EISDIR):
		e.Try = "name a program, such as one in that directory"
	case errors.Is(err, fs.ErrPermission):
		e.Try = "make it executable: chmod +x"
	}
	return e
}

// tryFailed is what to try after an operation that failed: what the store says, or, if no server has answered, to look for it.
func tryFailed(t storeuri.Target, err error) string {
	switch {
	case store.Remedy(err) != "":
		return store.Remedy(err)
	case errors.Is(err, store.ErrThrottled):
		return "again in a moment; if it lasts, the server has too much to do"
	case unreached(err) && !t.IsFile():
		return "check that the server runs, that host and port are right, and that its network lets this machine in; leasectl doctor says more"
	}
	return "" // The answer says what is wrong.
}

// unreached reports that no server answered: none was there, or it hung up, or it speaks no TLS.
func unreached(err error) bool {
	_, network := errors.AsType[net.Error](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	over := []error{io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, mysql.ErrInvalidConn}
	return network || plain || slices.ContainsFunc(over, func(of error) bool { return errors.Is(err, of) })
}

// tryMissing is what the store says, but that this command has a name for Init.
func tryMissing(t storeuri.Target, err error) string {
	switch own := store.Remedy(err); {
	case Removed(err):
		return own + ": leasectl run creates an empty one otherwise"
	case own != store.Remedy(store.ErrMissing):
		return own
	}
	return Command(t, "leasectl init")
}

// Command is a command of leasectl with the store that it is for, as one pastes it into a
// shell. A store with a secret is named by LEASECTL_STORE alone, or as it was: in a file.
func Command(t storeuri.Target, command string) string {
	word, ok := display.Word(t.Shown)
	file, named := display.Word(t.File)
	switch {
	case t.File != "" && named && !t.InEnv:
		return command + " --store-file " + file
	case t.HasSecret() && !t.InEnv:
		return "with the store in " + storeuri.Variable + ": " + command
	case t.HasSecret(), t.Shown == "", !ok:
		return command
	}
	return command + " --store " + word
}
