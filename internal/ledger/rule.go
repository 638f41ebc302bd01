package ledger

import (
	"errors"
	"fmt"
)

// Rule names what a record breaks, for those who report it.
type Rule string

// The rules. The first are about a record alone, the others about what is in force below it.
const (
	Unreadable  Rule = "unreadable"   // its envelope can't be obeyed
	Full        Rule = "full"         // there is no key above it
	WindowAhead Rule = "window-ahead" // it starts too far ahead of store time
	TooLong     Rule = "too-long"     // its window is too long
	TokenAhead  Rule = "token-ahead"  // its token is too far ahead of store time

	Override      Rule = "override"       // it has a window, or the claim below it
	Overlap       Rule = "overlap"        // it starts before the end of the window below it
	Token         Rule = "token"          // its token is not above that of the term below it
	ExtensionTerm Rule = "extension-term" // it goes on with a claim, by another token or group
	ExtensionGap  Rule = "extension-gap"  // it goes on with a claim, and not at once
	ExtensionLate Rule = "extension-late" // it goes on with a claim that was released
	OtherTerm     Rule = "other-term"     // it releases another term than that in force
	Release       Rule = "release"        // it releases what is not left, or has a window
	Bookkeeping   Rule = "bookkeeping"    // it grants nothing, and changes the term in force
	ResetLate     Rule = "reset-late"     // it resets as of later than anything below it lasts
)

// brokenError is why a record can't be obeyed.
type brokenError struct {
	rule Rule
	error
}

func (e *brokenError) Unwrap() error { return e.error }

func broken(r Rule, format string, args ...any) error {
	return &brokenError{r, fmt.Errorf(format, args...)}
}

// Broken is the rule that the error of Poison or Contradicts is about; empty for another error.
func Broken(err error) Rule {
	if e, ok := errors.AsType[*brokenError](err); ok {
		return e.rule
	}
	return ""
}
