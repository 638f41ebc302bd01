// Package transcript takes what the runs of a command write, by lines: into a file that rotates, or to keep the end of each run's
// output.
package transcript

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
)

// Where is where output goes: journal, tail or file:PATH.
type Where string

// The forms. Journal is the default: the command writes to leasectl's own standard output and error.
const (
	Journal Where = "journal"
	Tail    Where = "tail"
	inFile        = "file:"
)

// Parse reads one of the forms.
func Parse(text string) (Where, error) {
	if path, ok := strings.CutPrefix(text, inFile); ok && path != "" || text == string(Journal) || text == string(Tail) {
		return Where(text), nil
	}
	return "", errors.New("must be journal, tail or file:PATH")
}

// mostLine bounds a line, in bytes. A longer one becomes several.
const mostLine = 16 << 10

// InFile reports that output goes to a file, and nowhere else.
func (w Where) InFile() bool { return strings.HasPrefix(string(w), inFile) }

// Check reports why a file can't be written. It makes none: a run may begin to write to it just then.
func Check(w Where) error {
	path, toFile := strings.CutPrefix(string(w), inFile)
	if !toFile {
		return nil
	}
	f := file{path: path}
	defer f.close()
	err := f.openAs(0)
	if errors.Is(err, fs.ErrNotExist) {
		return creatable(folder(path))
	}
	return err
}

// mostLinks is how many symbolic links are followed; Linux follows as many.
const mostLinks = 40

// folder is where the file is, or would be, that a path names in the end, by symbolic links. It is not cleaned, since a folder
// may be a link, too.
func folder(path string) string {
	for range mostLinks {
		dir, _ := filepath.Split(path)
		to, err := os.Readlink(path)
		switch {
		case err != nil:
			return cmp.Or(dir, ".")
		case filepath.IsAbs(to):
			path = to
		default:
			path = dir + to
		}
	}
	return path // It is no folder.
}

// creatable reports why no file can be made in a folder.
func creatable(dir string) error {
	f, err := os.CreateTemp(dir, ".leasectl-*")
	if err != nil {
		return display.WithoutPath(err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Transcript takes what runs write, one run after the other. Nil takes nothing.
type Transcript struct {
	stdout, stderr stream
	newest         atomic.Value // a string: End. Whoever asks for it waits for no disk.

	mu sync.Mutex // of all below
	to sink
}

// sink takes the lines of both streams, and keeps the end of a run's or nothing.
type sink interface {
	line(text []byte)
	ended() string
}

// New makes what output goes to: nil for Journal. A file is open while a run writes. Of what can't be written to it, failed
// gets the first error of each run, on any goroutine.
func New(w Where, failed func(error)) *Transcript {
	o := &Transcript{}
	switch path, toFile := strings.CutPrefix(string(w), inFile); {
	case toFile:
		o.to = &file{path: path, failed: failed}
	case w == Tail:
		o.to = &tail{}
	default:
		return nil
	}
	o.stdout.of, o.stderr.of = o, o
	o.newest.Store("")
	return o
}

// Stdout and Stderr get what a command writes there; nil: nobody does.
func (o *Transcript) Stdout() io.Writer {
	if o == nil {
		return nil
	}
	return &o.stdout
}

// Stderr is as Stdout.
func (o *Transcript) Stderr() io.Writer {
	if o == nil {
		return nil
	}
	return &o.stderr
}

// End takes in that a run has ended, and returns the end of what it wrote if that is kept: whole lines, of at most
// [store.MaxOutput] bytes.
func (o *Transcript) End() string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stdout.flush()
	o.stderr.flush()
	text := o.to.ended()
	o.newest.Store(text)
	return text
}

// Newest is what End has returned last.
func (o *Transcript) Newest() string {
	if o == nil {
		return ""
	}
	return o.newest.Load().(string)
}

// stream is one standard stream of a command.
type stream struct {
	of      *Transcript
	partial []byte // a line that has no end yet
}

// Write takes in what was written. It never fails.
func (s *stream) Write(b []byte) (int, error) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for rest := b; len(rest) > 0; {
		n := min(len(rest), mostLine-len(s.partial))
		end := bytes.IndexByte(rest[:n], '\n') + 1
		if end > 0 {
			n = end
		}
		s.partial, rest = append(s.partial, rest[:n]...), rest[n:]
		if end > 0 || len(s.partial) == mostLine {
			s.flush()
		}
	}
	return len(b), nil
}

// flush ends the line.
func (s *stream) flush() {
	if len(s.partial) > 0 {
		s.of.to.line(append(bytes.TrimSuffix(s.partial, []byte("\n")), '\n'))
		s.partial = s.partial[:0]
	}
}

// tail keeps the end of what a run writes.
type tail struct{ text []byte }

const (
	most = store.MaxOutput
	cut  = "…\n" // stands for the lines before, as in [store.Outcome]
)

func (t *tail) line(b []byte) {
	t.text = append(t.text, b...)
	if len(t.text) > 4*most {
		t.text = append(t.text[:0], t.text[len(t.text)-2*most:]...)
	}
}

// ended returns what it has, and begins anew.
func (t *tail) ended() string {
	text := t.text
	t.text = nil
	if len(text) <= most {
		return string(text)
	}
	text = text[len(text)-most+len(cut)-1:]
	return cut + string(text[bytes.IndexByte(text, '\n')+1:])
}
