// Package advice turns the errors of stores and commands into those of leasectl:
// with an exit code, and with what the user may try.
package advice

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	driver "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

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
		e.Code = exit.Refused
		e.Try, e.Problems[0] = refusal(t, err)
	case errors.Is(err, store.ErrDenied) || errors.Is(err, fs.ErrPermission):
		e.Code, e.Try = exit.Denied, tryDenied(t, err)
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

// tryFailed is what to try after an operation that failed. It depends on whether a
// server answered.
func tryFailed(t storeuri.Target, err error) string {
	switch {
	case errors.Is(err, store.ErrThrottled) && t.Scheme == storeuri.Cosmos:
		return "again in a moment; if it lasts, the container needs more throughput (leasectl plan shows how much workers use)"
	case errors.Is(err, store.ErrThrottled):
		return "again in a moment; if it lasts, the server has too much to do"
	case t.Scheme == storeuri.SQLite:
		return tryDirectory(t)
	case otherSet(err):
		return "correct replicaSet in the URI, or leave it out where there is no replica set"
	case members(err, isGhost) == all:
		return "again in a moment if the servers have just started; else make a replica set of them: rs.initiate()"
	case members(err, isSecondary) != none:
		return tryElection + "; " + Command(t, "leasectl inspect slots --stale") + " shows what a secondary has"
	case members(err, isKnown) != none:
		return tryElection
	case ailing(err):
		return "again in a moment: the server answers, but can't serve now; if it lasts, look at its health"
	case answered(err):
		return "" // The answer says what is wrong.
	case t.Registered():
		return "check that the server runs, that host and port are right, and that its network lets this machine in; leasectl doctor says more"
	case t.Scheme == storeuri.Cosmos:
		return "check the name of the account, and that its network lets this machine in"
	case strings.HasPrefix(t.Scheme, storeuri.MongoDB) && !unreached(err):
		return "" // A server answered, and the store didn't like what it said.
	case nameless(err) && t.Scheme != storeuri.MongoDB:
		return "check the host in the URI, for which the DNS must have an SRV record, and the DNS of this machine"
	case renamed(t, err):
		return "let this machine reach the members by the names that the replica set's configuration gives them, or change those: rs.reconfig()"
	}
	return "check that the server runs and that host and port are right"
}

const tryElection = "again in a moment: an election takes up to 12 s; if it lasts, start the members that don't answer"

// refusal is what to try with a store that is refused, and why it is refused.
// SQLite's own words for a file that it can't read would repeat ours.
func refusal(t storeuri.Target, err error) (try string, problem error) {
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return tryDirectory(t), err
	}
	switch e.Code() & 0xff {
	case code.SQLITE_NOTADB:
		return "choose another file", fmt.Errorf("%s: %w: not a SQLite database", t.Place(), store.ErrRefused)
	case code.SQLITE_CORRUPT:
		return "stop all its workers first, then remove it (a new ledger starts)",
			fmt.Errorf("%s: %w: the file is corrupt", t.Place(), store.ErrRefused)
	}
	return "", err
}

// tryDirectory is what to try with a SQLite store that is a directory, or below a file.
func tryDirectory(t storeuri.Target) string {
	if t.Scheme != storeuri.SQLite {
		return ""
	}
	info, err := os.Stat(t.Path())
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		place := filepath.Dir(t.Path())
		for {
			if info, err := os.Stat(place); err == nil && !info.IsDir() || place == filepath.Dir(place) {
				return "name a file in a directory: " + place + " is none"
			}
			place = filepath.Dir(place)
		}
	case err != nil || !info.IsDir():
		return ""
	}
	name, ok := display.Word("sqlite:" + filepath.Join(t.Path(), "leases.db"))
	if !ok {
		return "name a file in the directory"
	}
	return "name a file in the directory, such as --store " + name
}

func tryDenied(t storeuri.Target, err error) string {
	if errors.Is(err, syscall.EROFS) {
		return "mount the file system for writing; the log of the kernel says why it isn't, as after an error of the disk"
	}
	switch t.Scheme {
	case storeuri.SQLite:
		path := t.Path()
		return "run as a user that may write (to inspect: read) the directory " + filepath.Dir(path) + " and the file " + path
	case storeuri.Cosmos:
		if t.KeyFrom() == "" {
			return "set COSMOS_KEY or COSMOS_CONNECTION_STRING, or sign in (az login); an identity needs a role on the account, and can't create containers"
		}
		return "check the key in " + t.KeyFrom() + ", and the account's firewall"
	}
	if t.Registered() {
		return "check user, password or keys, and what rights they have; leasectl doctor shows which are missing"
	}
	return "check user, password and authSource in the URI, and the user's role (readWrite; to inspect: read)"
}

func tryMissing(t storeuri.Target, err error) string {
	if Removed(err) {
		return "put the ledger back, or a backup of it, before you start workers again: leasectl run creates an empty one otherwise"
	}
	if t.Scheme == storeuri.SQLite {
		dir := filepath.Dir(t.Path())
		if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path != t.Path() {
			dir = e.Path // The file is a link into another directory.
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return "create the directory " + dir + " first"
		}
	}
	if t.Registered() && strings.Contains(err.Error(), "there is no database ") {
		return "create the database, or correct its name in the URI; leasectl init creates tables only"
	}
	return Command(t, "leasectl init")
}

// Command is a command of leasectl with the store that it is for, as one pastes it into a
// shell. A store with a secret is named by LEASECTL_STORE alone, or as it was: in a file.
func Command(t storeuri.Target, command string) string {
	word, ok := display.Word(t.Shown)
	file, named := display.Word(t.File)
	switch {
	case t.File != "" && named:
		return command + " --store-file " + file
	case t.HasSecret() && !t.InEnv:
		return "with the store in " + storeuri.Variable + ": " + command
	case t.HasSecret(), t.Shown == "", !ok:
		return command
	}
	return command + " --store " + word
}
