// Package option has the problems with options, for workerlease and its subpackages.
package option

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slotlease/slotlease/store"
)

// ErrInvalid is workerlease.ErrOptions.
var ErrInvalid = errors.New("invalid options")

// Error is a problem with one option: see workerlease.OptionError.
type Error struct {
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

	Found string // the text between Field and Rule
	Cause error  // may be nil
}

// Error is one line: the field, the value and the rule.
func (e *Error) Error() string {
	if e.Found == "" {
		return e.Field + ": " + e.Rule
	}
	return e.Field + ": " + e.Found + ": " + e.Rule
}

// Is reports that an Error is an ErrInvalid.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// Unwrap returns the cause, which may be nil.
func (e *Error) Unwrap() error { return e.Cause }

// Errors collects problems.
type Errors []error

// Add adds a problem.
func (all *Errors) Add(e Error) { *all = append(*all, &e) }

// Is adds a problem with a value.
func (all *Errors) Is(field string, value any, rule string, args ...any) {
	text := fmt.Sprint(value)
	all.Add(Error{Field: field, Value: text, Found: "is " + text, Rule: fmt.Sprintf(rule, args...)})
}

// Missing adds a problem with what is nil.
func (all *Errors) Missing(field, rule string) {
	all.Add(Error{Field: field, Found: "is nil", Rule: rule})
}

// WorkerType adds the problem with a worker type, if package store finds one.
func (all *Errors) WorkerType(t string) {
	if t == store.Sightings {
		all.Is("WorkerType", t, "workers record poison under this name: use another")
		return
	}
	err := store.CheckWorkerType(t)
	invalid, ok := errors.AsType[*store.WorkerTypeError](err)
	if !ok {
		return
	}
	e := Error{Field: "WorkerType", Value: t, Rule: invalid.Rule, Found: fmt.Sprintf("is %.70q", t), Cause: err}
	if t == "" {
		e.Found = "is empty"
	}
	all.Add(e)
}

// Text adds what keeps a text from being stored.
func (all *Errors) Text(field, value string, most int) {
	e := Error{Field: field, Value: value}
	if len(value) > most {
		e.Found, e.Rule = fmt.Sprintf("has %d bytes", len(value)), fmt.Sprintf("at most %d allowed", most)
	} else if i := strings.IndexByte(value, 0); i >= 0 {
		e.Found, e.Rule = fmt.Sprintf("has a NUL at byte %d", i), "not allowed"
	} else if !utf8.ValidString(value) {
		e.Found, e.Rule = fmt.Sprintf("is %.70q", value), "must be UTF-8"
	} else {
		return
	}
	all.Add(e)
}

// Join returns all problems as one error, nil if there are none.
func (all Errors) Join() error { return errors.Join(slices.Clone(all)...) }
