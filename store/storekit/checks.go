package storekit

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// Check is a row of a store's table of checks: what is found out of the service, and how. What Examine tells, why operations are
// refused, and what Warning says follow from the table.
type Check struct {
	// Name is that of its findings.
	Name string
	// Level is that of what is wrong, unless a Flaw has a level of its own.
	Level store.Level
	// Ask finds out, and stores nothing. It returns what is as it should be, in a few words, or an error: Flaws, a Skip, or what
	// the service said.
	Ask func(ctx context.Context) (sound string, err error)
	// Grant is what to do if Ask is denied.
	Grant string
	// Needed is why the rows below can't be asked unless this one is sound; empty if they can.
	Needed string
	// Alone is set for a row that asks nobody, so that it needs no other.
	Alone bool
	// Slow is set for a row that may take as long as that of the connection.
	Slow bool
	// Standing is set for what operations depend on: it is asked by Fit, too.
	Standing bool
}

// Flaws are what a check has found. None of them is no error.
type Flaws []Flaw

func (f Flaws) Error() string {
	texts := make([]string, len(f))
	for i, one := range f {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "; ")
}

// Found returns flaws as the result of a check, or what is sound if there are none.
func Found(sound string, flaws ...Flaw) (string, error) {
	if len(flaws) > 0 {
		return "", Flaws(flaws)
	}
	return sound, nil
}

// Skip is why something couldn't be found out.
type Skip string

func (s Skip) Error() string { return string(s) }

// Checks is a store's table of checks. The first row is that of the connection.
type Checks struct {
	Rows   []Check
	Runner *Runner
	Clock  clock.Clock

	warning atomic.Pointer[string]
}

// Examine asks all rows, in their order, each within its part of the time. It is what store.Description has.
func (c *Checks) Examine(ctx context.Context) ([]store.Finding, error) {
	if c.Runner.Closed() {
		return nil, c.Runner.Invalid("examine", store.ErrClosed)
	}
	e := &Exam{Clock: c.Clock, Scrub: func(text string) string { return c.Runner.o.Secrets.Scrub(text) }}
	missing := ""
	for i, row := range c.Rows {
		if missing != "" && !row.Alone {
			e.Skip(missing, row.Name)
			continue
		}
		within := e.Part
		if i == 0 || row.Slow {
			within = e.First
		}
		part, cancel := within(ctx)
		began := c.Clock.Now()
		ask := Probe[string]
		if row.Alone {
			ask = func(ctx context.Context, _ *Runner, do func(context.Context) (string, error)) (string, error) {
				return do(ctx)
			}
		}
		sound, err := ask(part, c.Runner, row.Ask)
		cancel()
		if err == nil && i == 0 {
			sound += fmt.Sprintf(" in %v", e.Since(began))
		}
		if report(e, row, sound, err); err != nil && missing == "" {
			missing = row.Needed
		}
	}
	return e.Found, nil
}

// report adds what a row has found.
func report(e *Exam, row Check, sound string, err error) {
	flaws, flawed := errors.AsType[Flaws](err)
	skip, skipped := errors.AsType[Skip](err)
	switch {
	case err == nil:
		e.OK(row.Name, sound)
	case flawed:
		for _, f := range flaws {
			e.Add(f.Finding(row.Level))
		}
	case skipped:
		e.Skip(string(skip), row.Name)
	case errors.Is(err, store.ErrDenied):
		e.Add(store.Finding{Check: row.Name, Level: row.Level, Text: err.Error(), Remedy: row.Grant, Err: err})
	default:
		e.Failed(row.Name, row.Level, err)
	}
}

// Ask asks one row alone, and returns what is wrong: a flaw is store.ErrRefused, and what can't be found out is nil.
func (c *Checks) Ask(ctx context.Context, name string) error {
	for _, row := range c.Rows {
		if row.Name == name {
			_, err := row.Ask(ctx)
			return c.refusal(row, err, nil)
		}
	}
	return nil
}

// Fit asks the standing rows, for a Fitness: a flaw with LevelFail refuses the store, and others are its Warning.
func (c *Checks) Fit(ctx context.Context) error {
	var warnings []string
	for _, row := range c.Rows {
		if !row.Standing {
			continue
		}
		_, err := row.Ask(ctx)
		if err := c.refusal(row, err, func(f Flaw) { warnings = append(warnings, f.Error()) }); err != nil {
			return err
		}
	}
	text := strings.Join(warnings, "; ")
	c.warning.Store(&text)
	return nil
}

// refusal is the error of operations for what a row has found. warn takes what refuses nothing.
func (c *Checks) refusal(row Check, err error, warn func(f Flaw)) error {
	if _, skipped := errors.AsType[Skip](err); skipped {
		return nil
	}
	flaws, flawed := errors.AsType[Flaws](err)
	if !flawed {
		return err
	}
	for _, f := range flaws {
		if f.Finding(row.Level).Level == store.LevelFail {
			return f.Refuse()
		}
		if warn != nil {
			warn(f)
		}
	}
	return nil
}

// Warning is what the newest Fit has found that refuses nothing. It asks nobody.
func (c *Checks) Warning() string {
	if text := c.warning.Load(); text != nil {
		return *text
	}
	return ""
}

// Secured is the row of how a service is reached whose URL is given, or with nil by https.
func Secured(u *url.URL) Check {
	return Check{Name: store.CheckTLS, Level: store.LevelWarn, Alone: true, Ask: func(context.Context) (string, error) {
		switch {
		case u == nil || u.Scheme == "https":
			return "encrypted, and the server's certificate is verified", nil
		case Plain(u):
			return Found("", Flaw{
				Check: store.CheckTLS, What: "not encrypted (insecureHTTP): records can be read and changed on the way", Remedy: "use an endpoint with https",
			})
		}
		return "not encrypted, to this machine alone", nil
	}}
}

// Assumed is the row of servers' clocks that nobody has compared, and why.
func Assumed(skew time.Duration, why string) Check {
	return Check{Name: store.CheckServerClocks, Alone: true, Ask: func(context.Context) (string, error) {
		return "", Skip(fmt.Sprintf("not measured: assumed to be apart by %v at most (serverSkew), because %s", skew, why))
	}}
}
