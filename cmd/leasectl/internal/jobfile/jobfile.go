// Package jobfile reads files of jobs: crontabs, and jobs.yaml.
//
// A job is a command and the options of leasectl run. This package knows the names of options, and not what their values
// mean: whoever runs jobs checks these as leasectl run does, and names the place of each in the file.
//
// A file is jobs.yaml if the first word that it has outside comments ends in a colon, or begins with "---", "%" or "{".
// Any other file is a crontab.
package jobfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/store"
)

// maxSize bounds a file, in bytes.
const maxSize = 1 << 20

// Home is the Dir of a job whose command begins in the home directory of its user.
const Home = "~"

// Job is one job of a file: a command, and options of leasectl run.
type Job struct {
	Place // where it begins

	Keyed   bool     // its file has keys, by which its options are named
	Name    string   // the worker type, which is valid
	Options []Option // by the names of leasectl run's flags, without --worker-type; some repeat
	Command []string // the program and its arguments; never empty
	// Stdin is the standard input of the command. If it is empty, the command of a crontab has none.
	Stdin string
	User  string   // by whom the command runs; empty: by the user of leasectl
	Dir   string   // where the command begins; empty: where leasectl did; or [Home]
	Env   []string // NAME=value, over the environment of leasectl
}

// Option is an option of leasectl run, such as every with 5m. That of a flag without a value has "true".
type Option struct {
	Place

	Name, Value string
}

// Place is a place in a file. Lines and columns count from 1; without a column it is the whole line, and without a
// line the file.
type Place struct {
	File         string
	Line, Column int
}

// String is the place as compilers name it, such as jobs.yaml:12:5.
func (p Place) String() string {
	text := p.File
	for _, n := range []int{p.Line, p.Column} {
		if n == 0 {
			break
		}
		text += ":" + strconv.Itoa(n)
	}
	return text
}

// Error is a fault at a place of a file.
type Error struct {
	Place

	Err error
}

func (e *Error) Error() string { return e.String() + ": " + e.Err.Error() }

// Unwrap is the fault without its place.
func (e *Error) Unwrap() error { return e.Err }

// Note says how a file was read, or names what counts for nothing in it. It is for people.
type Note struct {
	Place

	Text string
	Lost bool // it means something to cron, and nothing here
}

// Read reads the jobs of files, each of up to 1 MiB. The error joins all faults of all files as [Error], in the order of
// the files and their lines. That two jobs have one name is a fault, too. With an error come the jobs that have no fault, so
// that these can be checked further.
func Read(names ...string) ([]Job, []Note, error) {
	return (&reader{machine: here}).read(names)
}

// ReadCrontabs reads files as crontabs, for what replaces them: a line that can't be a job, such as that of @reboot, is no
// fault but a note.
func ReadCrontabs(names ...string) ([]Job, []Note, error) {
	return (&reader{machine: here, crontabs: true}).read(names)
}

func (r *reader) read(names []string) ([]Job, []Note, error) {
	r.seen = map[string]Place{}
	var faults []error
	for _, name := range names {
		r.file, r.faults = name, nil
		r.readFile()
		slices.SortStableFunc(r.faults, func(a, b *Error) int {
			return cmp.Or(a.Line-b.Line, a.Column-b.Column)
		})
		// Each job that has a default has its faults.
		r.faults = slices.CompactFunc(r.faults, func(a, b *Error) bool { return a.Error() == b.Error() })
		for _, f := range r.faults {
			faults = append(faults, f)
		}
	}
	return r.jobs, r.notes, errors.Join(faults...)
}

// reader reads files one after the other.
type reader struct {
	machine
	crontabs bool // all are crontabs, which are to be replaced

	file   string // that is being read
	faults []*Error
	jobs   []Job // of all files
	notes  []Note
	seen   map[string]Place // the names of the jobs so far
}

// readFile reads the jobs of one file.
func (r *reader) readFile() {
	if r.leftOut() {
		return
	}
	text, err := Load(r.file)
	switch {
	case err != nil:
		r.bad(0, 0, "%w", err)
	case !r.crontabs && isYAML(text):
		r.readYAML(text)
	default:
		r.readCrontab(string(text))
	}
}

// bad notes a fault at a line and a column of the file.
func (r *reader) bad(line, column int, format string, args ...any) {
	r.faults = append(r.faults, &Error{Place{r.file, line, column}, fmt.Errorf(format, args...)})
}

// note notes something for people, and lose what is lost.
func (r *reader) note(line int, format string, args ...any) {
	r.notes = append(r.notes, Note{Place{r.file, line, 0}, fmt.Sprintf(format, args...), false})
}

func (r *reader) lose(line int, format string, args ...any) {
	r.notes = append(r.notes, Note{Place{r.file, line, 0}, fmt.Sprintf(format, args...), true})
}

// checkName notes why a name is no worker type.
func (r *reader) checkName(name string, at Place) {
	if e, ok := errors.AsType[*store.WorkerTypeError](store.CheckWorkerType(name)); ok {
		r.bad(at.Line, at.Column, "name %.70q: %s", name, e.Rule)
	}
}

// add adds a job. named is where it has its name, and rename says how to give it another.
func (r *reader) add(j Job, named Place, rename string) {
	if first, twice := r.seen[j.Name]; twice {
		r.bad(named.Line, named.Column, "the job at %v is named %q, too: %s", first, j.Name, rename)
		return
	}
	r.seen[j.Name] = j.Place
	r.noteBackground(j)
	r.jobs = append(r.jobs, j)
}

// Load is the text of a file of up to 1 MiB. The error doesn't name the file.
func Load(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, display.WithoutPath(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	switch {
	case err != nil:
		return nil, display.WithoutPath(err)
	case len(text) > maxSize:
		return nil, errors.New("has more than 1 MiB: split it into several files")
	case bytes.IndexByte(text, 0) >= 0:
		return nil, errors.New("has a zero byte: it is no text")
	}
	return text, nil
}

// isYAML reports that a text isn't a crontab: no line of a job or a variable begins like that.
func isYAML(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		return strings.HasSuffix(words[0], ":") || strings.HasPrefix(line, "---") || strings.ContainsRune("%{", rune(line[0]))
	}
	return false
}
