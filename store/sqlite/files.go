package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// ErrUnshared: other workers may use another log than this handle, so they may have
// stored the same keys. An operation that finds this out before it does anything fails
// with store.ErrRefused, too (with store.ErrMissing if the file was removed). A handle
// that has found it out while it used the file refuses every operation from then on.
var ErrUnshared = errors.New("workers may not share the ledger")

// errLinked: the ledger has another name, by which nobody may have opened it.
var errLinked = fmt.Errorf("%w", ErrUnshared)

// errOtherLog: a handle that uses other files beside the ledger has it open.
var errOtherLog = fmt.Errorf("%w: %w", store.ErrRefused, ErrUnshared)

// files are a ledger and the two files beside it, as a handle has opened them. Their
// identity can't be used again before they are closed.
type files struct {
	path   string // as given
	target string // with symbolic links followed
	infos  [3]os.FileInfo
}

var suffixes = [...]string{"", "-wal", "-shm"}

// filesAt looks at the files. With a log, all three must be there.
func filesAt(path string, log bool) (f files, err error) {
	f.path = path
	if f.target, err = filepath.EvalSymlinks(path); err != nil {
		return files{}, err
	}
	for i := range suffixes {
		if i > 0 && !log {
			break
		}
		if f.infos[i], err = stat(f.name(i)); err != nil {
			return files{}, err
		}
	}
	return f, nil
}

func (f files) name(i int) string {
	if i == 0 {
		return f.path
	}
	return f.target + suffixes[i]
}

// check returns ErrUnshared, and what was found, unless the paths still name the files,
// and the ledger has one name. It opens nothing. Without a log it checks the ledger alone.
func (f files) check(log bool) error {
	for i, opened := range f.infos {
		if opened == nil || i > 0 && !log {
			break
		}
		now, err := stat(f.name(i))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if i == 0 {
				return fmt.Errorf("%w: %s was removed: stop all workers, put it back, and start them again (%w)", ErrUnshared, f.name(i), store.ErrMissing)
			}
			return fmt.Errorf("%w: %s was removed while in use: stop all workers of the ledger, then start them again", ErrUnshared, f.name(i))
		case err != nil:
			return err
		case !os.SameFile(now, opened):
			return fmt.Errorf("%w: %s was replaced while in use: stop all workers of the ledger, then start them again", ErrUnshared, f.name(i))
		case i == 0 && links(now) > 1:
			return fmt.Errorf("%w: %s has %d hard links: stop all workers of the ledger, remove all links but one, then start them again", errLinked, f.name(i), links(now))
		}
	}
	return nil
}

// before makes an error of files.check that of an operation which did nothing.
func before(err error) error {
	if !errors.Is(err, ErrUnshared) || errors.Is(err, store.ErrMissing) || errors.Is(err, store.ErrRefused) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrRefused, err)
}

// otherLog is errOtherLog, and what to do.
func otherLog(f files) error {
	return fmt.Errorf("%w: %s is in use with other -wal and -shm files than those beside it: they were removed, or a worker uses another path: stop all workers of the ledger, give all of them one path in one directory, then start them again", errOtherLog, f.path)
}

// fit refuses a path by which workers may not share the file, or its log. SQLite names
// the log after the path, so a file that has two paths may have two logs.
func fit(path string, anyFileSystem bool) error {
	refuse := func(remedy, format string, args ...any) error {
		return fmt.Errorf("%w: %w: %w", store.ErrRefused, ErrUnshared, fault.Flaw{Check: CheckFileSystem, What: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	info, err := stat(path)
	place := path
	switch {
	case errors.Is(err, fs.ErrNotExist):
		place = filepath.Dir(named(path))
	case err != nil || !info.Mode().IsRegular():
		return nil // inspect says why
	case links(info) > 1:
		return refuse("stop all workers, remove all but one, and give all workers that path", "%s has %d hard links, and each would have its own log", path, links(info))
	case mounted(path):
		return refuse("mount its directory, not the file", "%s is itself a mount point, so it has its own log here", path)
	}
	if name := sharedFileSystem(place); name != "" && !anyFileSystem {
		return refuse("use a local disk (or set unsafeFileSystem, if only processes of one machine use it, by one mount)",
			"%s is on %s, where two machines or mounts can have the file open and not see each other", path, name)
	}
	return nil
}
