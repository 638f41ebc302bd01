package store

import (
	"errors"
	"fmt"
	"time"
)

// The errors that stores return, wrapped with the operation and the key. Match
// them with errors.Is.
var (
	// ErrConflict: an append found its key taken.
	ErrConflict = errors.New("key exists")
	// ErrNotFound: there is no record at the key.
	ErrNotFound = errors.New("record not found")
	// ErrNotStored: an append surely did nothing, and never will. It comes along with the
	// reason, such as ErrDenied. A store that can't tell leaves it out.
	ErrNotStored = errors.New("nothing was stored")
	// ErrInvalid: the record or the worker type breaks a rule; nothing was sent.
	ErrInvalid = errors.New("invalid record")
	// ErrThrottled: the store asks the caller to retry later; see ThrottledError.
	// The outcome of an append is unknown even so.
	ErrThrottled = errors.New("store is throttling")
	// ErrRefused: the store can't keep the promises of a Ledger (a capped
	// collection, another application's file), so using it would not be safe.
	ErrRefused = errors.New("store refused")
	// ErrDenied: the credentials are wrong, or rights are missing.
	ErrDenied = errors.New("access denied")
	// ErrMissing: the file, database or table doesn't exist yet; Init creates it.
	ErrMissing = errors.New("ledger not initialised")
	// ErrFinal: waiting doesn't help, as when the catalog of the store says which right is missing. An error that matches it
	// matches ErrDenied or ErrRefused, too. Any other denial or refusal may pass, as in an election
	// or a failover, or the store can't tell.
	ErrFinal = errors.New("waiting doesn't help")
	// ErrClosed: the ledger was closed.
	ErrClosed = errors.New("ledger is closed")
)

// ThrottledError says when to retry. It matches ErrThrottled.
type ThrottledError struct {
	// RetryAfter is zero if the store didn't say.
	RetryAfter time.Duration
	Err        error
}

// Error names the wait and the cause.
func (e *ThrottledError) Error() string {
	return fmt.Sprintf("%v, retry after %v: %v", ErrThrottled, e.RetryAfter, e.Err)
}

// Unwrap makes errors.Is(err, ErrThrottled) true.
func (e *ThrottledError) Unwrap() []error { return []error{ErrThrottled, e.Err} }

// Detail returns all that a store knows about an error, in one line without secrets, such as
// a driver's own words. The error's text is what matters of them. It is the text if there is
// no more, and empty if err is nil.
func Detail(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[interface {
		error
		Detail() string
	}](err); ok {
		return e.Detail()
	}
	return err.Error()
}

// Remedy is what to do about an error of a store, in one line without secrets: what the store knows, or else what
// helps in general. It is empty if the error's text says so already, or if nothing is known.
func Remedy(err error) string {
	if own := remedy(err); own != "" {
		return own
	}
	switch {
	case errors.Is(err, ErrMissing):
		return "call the ledger's Init, which is safe to repeat, or run leasectl init"
	case errors.Is(err, ErrDenied):
		return "check user, password or keys, and what rights they have; leasectl doctor shows which are missing, and leasectl init --print what to grant"
	}
	return ""
}

// remedy is the first that an error, or one that it wraps, has: one may have none, and wrap one that has.
func remedy(err error) string {
	if e, ok := err.(interface{ Remedy() string }); ok && e.Remedy() != "" {
		return e.Remedy()
	}
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		return remedy(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if own := remedy(err); own != "" {
				return own
			}
		}
	}
	return ""
}
