package workerlease

import (
	"fmt"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease/internal/option"
)

// ErrOptions is wrapped by every error about Options and by each [OptionError].
var ErrOptions = option.ErrInvalid

// OptionError is a problem with one option. Functions that check options return all
// problems at once, joined: OptionErrors lists them. errors.Is(e, ErrOptions) holds. Field names the option, Value is its
// value as text, With names other options that it doesn't go with, and Rule is what to do.
type OptionError = option.Error

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

// checkLedger adds that a client has no ledger, or that NewClient has not made it.
func (c *Client) checkLedger(all *option.Errors) {
	switch {
	case !c.made():
		all.Add(option.Error{Field: "Client", Found: "is not made by NewClient", Rule: "make it by that"})
	case c.ledger == nil:
		all.Missing("ledger", "open one with store/mongo, store/cosmos, store/sqlite or store/memory")
	}
}

// checkSchedule adds how a schedule breaks the promises of slots.Schedule near a time, and
// reports whether it keeps them.
func checkSchedule(all *option.Errors, s slots.Schedule, near time.Time) bool {
	err := slots.Check(s, near)
	if err == nil {
		return true
	}
	text := s.String()
	all.Add(option.Error{
		Field: "Schedule", Value: text, Found: fmt.Sprintf("is %.70q: %v", text, err), Cause: err,
		Rule: "every instant must lie in one slot, and a slot must end where the next one starts: fix its At and Next, and check them with slots.Check",
	})
	return false
}
