package workerlease

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
)

// ErrOptions is wrapped by every error about Options and by each [OptionError].
var ErrOptions = errors.New("invalid options")

// OptionError is a problem with one option. Functions that check options return all
// problems at once, joined: OptionErrors lists them. errors.Is(e, ErrOptions) holds.
type OptionError struct {
	// Field is the option: a field of Options such as "Margin" or "Job.MaxAttempts", a
	// callback such as "LeaseAllocated", "ClientOptions.Rand", or a parameter such as
	// "ledger" or "task".
	Field string
	// Value is the value as text; empty if the problem is that it is set, or nil.
	Value string
	// With names the other options that the value doesn't go with.
	With []string
	// Rule is what to do, such as "must be 0 (default) or at least 10ms". It names other
	// options by their fields.
	Rule string

	found string // the text between Field and Rule
	err   error  // the cause; may be nil
}

// Error is one line: the field, the value and the rule.
func (e *OptionError) Error() string {
	if e.found == "" {
		return e.Field + ": " + e.Rule
	}
	return e.Field + ": " + e.found + ": " + e.Rule
}

// Is reports that an OptionError is an ErrOptions.
func (e *OptionError) Is(target error) bool { return target == ErrOptions }

// Unwrap returns the cause, which may be nil.
func (e *OptionError) Unwrap() error { return e.err }

// OptionErrors lists the option errors that an error wraps, in the order in which its
// text has them; none if the error is about something else.
func OptionErrors(err error) []*OptionError {
	var found []*OptionError
	switch e := err.(type) { //nolint:errorlint // It walks through all that is wrapped.
	case *OptionError:
		found = append(found, e)
	case interface{ Unwrap() error }:
		found = OptionErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			found = append(found, OptionErrors(each)...)
		}
	}
	return found
}

// optionErrors collects problems.
type optionErrors []error

func (all *optionErrors) add(e OptionError) { *all = append(*all, &e) }

// is adds a problem with a value.
func (all *optionErrors) is(field string, value any, rule string, args ...any) {
	text := fmt.Sprint(value)
	all.add(OptionError{Field: field, Value: text, found: "is " + text, Rule: fmt.Sprintf(rule, args...)})
}

// missing adds a problem with what is nil.
func (all *optionErrors) missing(field, rule string) {
	all.add(OptionError{Field: field, found: "is nil", Rule: rule})
}

// workerType adds the problem with a worker type, if package store finds one.
func (all *optionErrors) workerType(t string) {
	if t == store.Sightings {
		all.is("WorkerType", t, "workers record poison under this name: use another")
		return
	}
	err := store.CheckWorkerType(t)
	invalid, ok := errors.AsType[*store.WorkerTypeError](err)
	if !ok {
		return
	}
	e := OptionError{Field: "WorkerType", Value: t, Rule: invalid.Rule, found: fmt.Sprintf("is %.70q", t), err: err}
	if t == "" {
		e.found = "is empty"
	}
	all.add(e)
}

// schedule adds how a schedule breaks the promises of slots.Schedule near a time, and
// reports whether it keeps them.
func (all *optionErrors) schedule(s slots.Schedule, near time.Time) bool {
	err := slots.Check(s, near)
	if err == nil {
		return true
	}
	text := s.String()
	all.add(OptionError{
		Field: "Schedule", Value: text, found: fmt.Sprintf("is %.70q: %v", text, err), err: err,
		Rule: "every instant must lie in one slot, and a slot must end where the next one starts: fix its At and Next, and check them with slots.Check",
	})
	return false
}

// text adds what keeps a text from being stored.
func (all *optionErrors) text(field, value string, most int) {
	e := OptionError{Field: field, Value: value}
	if len(value) > most {
		e.found, e.Rule = fmt.Sprintf("has %d bytes", len(value)), fmt.Sprintf("at most %d allowed", most)
	} else if i := strings.IndexByte(value, 0); i >= 0 {
		e.found, e.Rule = fmt.Sprintf("has a NUL at byte %d", i), "not allowed"
	} else if !utf8.ValidString(value) {
		e.found, e.Rule = fmt.Sprintf("is %.70q", value), "must be UTF-8"
	} else {
		return
	}
	all.add(e)
}

// join returns all problems as one error, nil if there are none.
func (all optionErrors) join() error { return errors.Join(slices.Clone(all)...) }
