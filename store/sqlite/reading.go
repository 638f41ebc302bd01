package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	code "modernc.org/sqlite/lib"
)

// The modes in which a handle for reading opens the file. None can change its content.
const (
	// lookForWriting lets SQLite clean up the file and the files beside it.
	lookForWriting = "mode=rw&_query_only=1"
	// lookBeside reads a file that is in use, by means of the files beside it.
	lookBeside = "mode=ro&readonly_shm=1"
	// lookAlone takes no locks and assumes that the file doesn't change.
	lookAlone = "mode=ro&immutable=1"
)

// errChanged means that a reading may be torn and must be repeated.
var errChanged = errors.New("the file was changed while it was read")

// reading is one way to read a file. The zero value is that of a handle that may
// also write.
type reading struct {
	mode   string
	target string      // the file, with symbolic links followed
	before os.FileInfo // with lookAlone, the file before it was read
	kept   *os.File    // with lookBeside, keeps the log where SQLite could create another; or nil
}

// readingOf chooses how to read the file. Without the right to write the file and its
// directory, the handle must not create -wal and -shm files: they would belong to this
// user, and the workers couldn't write them.
func readingOf(path string) (r reading, err error) {
	if r.target, err = filepath.EvalSymlinks(path); err != nil {
		return reading{}, err
	}
	file, dir := mayWrite(r.target) == nil, mayWrite(filepath.Dir(r.target)) == nil
	if file && dir {
		r.mode = lookForWriting
		return r, nil
	}
	if r.before, err = stat(r.target); err != nil {
		return reading{}, err
	}
	if !logged(r.target) {
		r.mode = lookAlone
		return r, nil
	}
	r.mode = lookBeside
	if !dir {
		return r, nil
	}
	// Where SQLite may create files, it would create the log again if the last worker
	// removed it just now.
	if r.kept, err = keepLog(r.target); err != nil {
		return reading{}, err
	}
	if !logged(r.target) {
		r.release()
		return reading{}, errChanged
	}
	return r, nil
}

// release ends a reading, after its database was closed.
func (r reading) release() {
	if r.kept != nil {
		_ = r.kept.Close()
	}
}

// alone reports whether the file is read without locks.
func (r reading) alone() bool { return r.mode == lookAlone }

// check returns the error of a reading, or errChanged if the way to read the file
// no longer fits it.
//
// A process that opens an idle ledger first creates the log, and it changes the file
// before it removes the log. So a reading alone is whole if there is no log afterwards
// and the file has not changed.
func (r reading) check(err error) error {
	switch r.mode {
	case lookAlone:
		after, e := stat(r.target)
		if e != nil || logged(r.target) || !os.SameFile(after, r.before) || after.Size() != r.before.Size() || !after.ModTime().Equal(r.before.ModTime()) {
			return errChanged
		}
	case lookBeside:
		// If a file beside it is missing or unfinished rather than forbidden, another
		// process is just opening or closing the ledger.
		c := resultCode(err)
		if c == code.SQLITE_READONLY_DIRECTORY || c == code.SQLITE_READONLY_CANTINIT || c&0xff == code.SQLITE_CANTOPEN && !r.forbidden() {
			return fmt.Errorf("%w: %w", errChanged, err)
		}
	}
	return err
}

// forbidden reports whether rights are missing to read the file or those beside it.
func (r reading) forbidden() bool {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if errors.Is(mayRead(r.target+suffix), fs.ErrPermission) {
			return true
		}
	}
	return false
}

// logged reports whether the file has a log or a journal beside it.
func logged(target string) bool {
	for _, suffix := range []string{"-wal", "-journal"} {
		if _, err := stat(target + suffix); err == nil {
			return true
		}
	}
	return false
}
