package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/interrupt"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/scrub"
)

// app is one invocation of leasectl: its environment, streams and options.
type app struct {
	env            []string
	stdin          io.Reader
	stdout, stderr io.Writer
	own            io.Writer   // for what leasectl itself writes there; nil: stderr
	shown          *sink       // stdout, for what the command itself writes
	spoke          atomic.Bool // something was written
	signals        interrupt.Signals

	store     string // --store
	storeFile string // --store-file
	secrets   scrub.Secrets
	plain     []string // the forms of a SQLite store: what looks like a secret there is none
	problems  []error  // bad option values, reported all together
	try       string   // what to try about them, if not --help
}

// unknown is the error for a command that doesn't exist.
func (a *app) unknown(c *cobra.Command, name string) error {
	try := c.CommandPath() + " --help"
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(name); len(near) > 0 {
		try = c.CommandPath() + " " + strings.Join(near, ", or "+c.CommandPath()+" ")
	}
	return exit.BadUsage(try, fmt.Errorf("unknown command %q for %q", secret.Shown(name), c.CommandPath()))
}

// report prints an error, one line for each problem and one for the hint, and
// returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exit.OK
	}
	e, ok := errors.AsType[*exit.Error](err)
	if !ok {
		e = exit.With(exit.Failure, err)
	}
	if e.Code == exit.Unread {
		return e.Code // Nobody is left to read a message.
	}
	for _, p := range e.Problems {
		// Errors of several, such as all faults of a URI, have a line each.
		text := strings.ReplaceAll(strings.TrimSpace(p.Error()), "\n", "; ")
		a.errorf("leasectl: %s\n", display.Line(a.scrub(text)))
	}
	if e.Try != "" {
		a.errorf("try: %s\n", display.Flat(a.scrub(e.Try)))
	}
	return e.Code
}

// bad notes a problem with an option.
func (a *app) bad(format string, args ...any) {
	a.problems = append(a.problems, fmt.Errorf(format, args...))
}

// usage is the error of all options that were noted, or nil.
func (a *app) usage(c *cobra.Command) error {
	if len(a.problems) == 0 {
		return nil
	}
	if errors.Is(errors.Join(a.problems...), interrupt.Err) {
		return exit.Quiet(exit.Interrupted) // while the file of --store-file was read
	}
	return exit.BadUsage(cmp.Or(a.try, c.CommandPath()+" --help"), a.problems...)
}

// getenv is the value of an environment variable, or "".
func (a *app) getenv(name string) string {
	value := ""
	for _, pair := range a.env {
		if n, v, ok := strings.Cut(pair, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// secretsIn finds what may be secret in the arguments and the environment.
func (a *app) secretsIn(args []string) scrub.Secrets {
	found := storeuri.Secrets(a.getenv)
	for _, arg := range args {
		secret.AddURI(&found, strings.TrimPrefix(arg, "--store="))
	}
	return found
}

func (a *app) scrub(text string) string { return secret.Scrub(text, a.secrets, a.plain) }

// told is the standard error for what leasectl itself writes: the commands that it runs write
// to it as they like.
func (a *app) told() io.Writer {
	return display.Writer{To: speaking{cmp.Or(a.own, a.stderr), &a.spoke}}
}

// picture is the standard output for what leasectl itself writes, such as a table.
func (a *app) picture() io.Writer {
	return display.Writer{To: speaking{a.stdout, &a.spoke}, Terminal: isTerminal(a.stdout)}
}

// printf and errorf write to the standard output and error. The sink keeps the error of the
// first; nothing could report that of the second.
func (a *app) printf(format string, args ...any) { _, _ = fmt.Fprintf(a.shown, format, args...) }
func (a *app) errorf(format string, args ...any) { _, _ = fmt.Fprintf(a.told(), format, args...) }

// sink is the standard output as commands write to it. If that fails, as on a full disk or
// because its reader has gone, the command is stopped, and fails.
type sink struct {
	io.Writer
	stop func()

	mu  sync.Mutex
	err error
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.Writer.Write(b)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = err
		}
		s.stop()
	}
	return n, err
}

// failed is the first error of writing, nil if there was none.
func (s *sink) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err == nil:
		return nil
	case interrupt.Unread(s.err):
		return exit.With(exit.Unread, interrupt.ErrUnread)
	}
	return fmt.Errorf("the output can't be written: %w", s.err)
}

// toldBy reports that a command's own error says that writing failed, and what it did before.
func (s *sink) toldBy(err error) bool {
	_, own := errors.AsType[*exit.Error](err)
	s.mu.Lock()
	defer s.mu.Unlock()
	return own && errors.Is(err, s.err)
}

// heard is the standard error as long as somebody reads it; gone is called when nobody does.
// That it is full stops no work.
type heard struct {
	io.Writer

	gone func()
}

func (h heard) Write(b []byte) (int, error) {
	n, err := h.Writer.Write(b)
	if interrupt.Unread(err) {
		h.gone()
	}
	return n, err
}

// shared makes a writer safe for several goroutines; files are.
func shared(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return zapcore.Lock(zapcore.AddSync(w))
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colour reports whether the standard output should have colours.
func (a *app) colour() bool {
	return isTerminal(a.stdout) && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
}

// columns is how many columns a line has room for: those in COLUMNS, or of the terminal; 0 if neither says.
func (a *app) columns() int {
	if n, err := strconv.Atoi(a.getenv("COLUMNS")); err == nil && n > 0 {
		return min(n, 1000)
	}
	f, ok := a.stdout.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
