package transcript

import (
	"errors"
	"fmt"
	"os"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
)

// A file is rotated when it would have more than maxFile bytes. So many older ones are kept, as PATH.1 (the newest) and so on.
const (
	maxFile  = 10 << 20
	mostKept = 4
)

// file is a log file that rotates, and is open while a run writes. Several processes may write to one: each looks whether
// another has rotated it.
type file struct {
	path   string
	failed func(error)

	f     *os.File // nil: it is not open
	size  int64
	quiet bool // an error of this run was reported
}

// open opens the file that has the name now, or makes it.
func (w *file) open() error { return w.openAs(os.O_CREATE) }

// openAs opens the file that has the name now, with a flag besides.
func (w *file) openAs(flag int) error {
	w.close()
	if info, err := os.Stat(w.path); err == nil && !info.Mode().IsRegular() {
		return errors.New("is not a regular file") // To open a pipe that nobody reads would take for ever.
	}
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_WRONLY|flag, 0o640)
	if err != nil {
		return display.WithoutPath(err)
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return display.WithoutPath(err)
	}
	w.f, w.size = f, info.Size()
	return nil
}

// line writes a line, or drops it. A full disk stops no command.
func (w *file) line(b []byte) {
	err := w.write(b)
	if err != nil && !w.quiet {
		w.quiet = true
		w.failed(fmt.Errorf("output is lost: %w", err))
	}
}

func (w *file) write(b []byte) error {
	if w.f == nil || w.size > 0 && w.size+int64(len(b)) > maxFile {
		if err := w.rotate(int64(len(b))); err != nil {
			return err
		}
	}
	n, err := w.f.Write(b)
	w.size += int64(n)
	return display.WithoutPath(err)
}

// rotate opens the file anew, and before that gives it another name, if there is still no room in it.
func (w *file) rotate(room int64) error {
	if err := w.open(); err != nil {
		return err
	}
	if w.size == 0 || w.size+room <= maxFile {
		return nil // Another process has done that.
	}
	for n := mostKept - 1; n > 0; n-- {
		_ = os.Rename(w.older(n), w.older(n+1)) // There may be none yet.
	}
	if err := os.Rename(w.path, w.older(1)); err != nil {
		w.size = 0 // The file goes on, and so much later it is tried again.
		return nil //nolint:nilerr // No line is lost for that.
	}
	return w.open()
}

func (w *file) older(n int) string { return fmt.Sprintf("%s.%d", w.path, n) }

// ended takes in that a run has ended. The next line opens what has the name then.
func (w *file) ended() string {
	w.quiet = false
	w.close()
	return ""
}

func (w *file) close() {
	if w.f != nil {
		_ = w.f.Close() // Each write has said whether it succeeded.
		w.f = nil
	}
}
