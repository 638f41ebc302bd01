// Package fault makes the errors of drivers fit to be shown: one line, bounded,
// without secrets, and with the sentinel of package store that they stand for.
package fault

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// MaxText bounds the text of one error, and MaxDetail its detail, in bytes.
const (
	MaxText   = 600
	MaxDetail = 16 << 10
)

// Shown has the text of an error as it may be shown, and the causes for errors.Is
// and errors.As.
type Shown struct {
	text   string
	detail string
	remedy string
	causes []error
}

// Show returns an error with the text and the causes. The text is put into one
// line; secrets must be scrubbed from it already.
func Show(text string, causes ...error) *Shown { return &Shown{text: OneLine(text), causes: causes} }

func (e *Shown) Error() string   { return e.text }
func (e *Shown) Unwrap() []error { return e.causes }

// Name adds a cause and puts its text first.
func (e *Shown) Name(cause error) {
	e.causes = append(e.causes, cause)
	if !strings.HasPrefix(e.text, cause.Error()) {
		e.text = cause.Error() + ": " + e.text
	}
}

// Say is Name, unless the text says so already, anywhere.
func (e *Shown) Say(cause error) {
	if strings.Contains(e.text, cause.Error()) {
		e.Mean(cause)
		return
	}
	e.Name(cause)
}

// Mean adds a cause that the text needn't name.
func (e *Shown) Mean(cause error) { e.causes = append(e.causes, cause) }

// Explain adds what store.Detail returns: all of the driver's words, of which the text is
// what matters, up to MaxDetail. Secrets must be scrubbed from it already.
func (e *Shown) Explain(detail string) {
	e.detail = Cut(strings.Join(strings.Fields(strings.ToValidUTF8(detail, "\uFFFD")), " "), MaxDetail)
}

// Detail is what Explain added, or the text.
func (e *Shown) Detail() string { return cmp.Or(e.detail, e.text) }

// Advise adds what store.Remedy returns. Secrets must be scrubbed from it already.
func (e *Shown) Advise(remedy string) { e.remedy = OneLine(remedy) }

// Remedy is what Advise added.
func (e *Shown) Remedy() string { return e.remedy }

// HideCancellation keeps errors.Is from finding what the causes so far are, for a
// cancellation that isn't the caller's. errors.As still finds their types.
func (e *Shown) HideCancellation() { e.causes = []error{cancelled{errors.Join(e.causes...)}} }

// Meaning returns the error with the sentinel that it stands for, if any. For
// store.ErrThrottled it is a store.ThrottledError with the wait that the server
// asked for.
func (e *Shown) Meaning(sentinel error, retryAfter time.Duration) error {
	switch {
	case sentinel == nil || errors.Is(e, sentinel):
	case errors.Is(sentinel, store.ErrThrottled):
		return &store.ThrottledError{RetryAfter: retryAfter, Err: e}
	default:
		e.Name(sentinel)
	}
	return e
}

// Of is the error of an operation of a store on a key, which may be empty.
func Of(store, op, key string, err error) error {
	if err == nil {
		return nil
	}
	if key != "" {
		op += " " + key
	}
	return fmt.Errorf("%s: %s: %w", store, op, err)
}

// Ended is the error of a context that has ended, with its cause, or nil if it hasn't. A cause that is the failure of
// another operation, as an errgroup's, is no more than said: what became of this one isn't known.
func Ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case err == nil || errors.Is(cause, err):
		return err
	case slices.ContainsFunc(sentinels, func(s error) bool { return errors.Is(cause, s) }):
		return fmt.Errorf("%w: %s", err, cause.Error())
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// sentinels are what errors of operations mean.
var sentinels = []error{
	store.ErrConflict, store.ErrNotFound, store.ErrNotStored, store.ErrWentBack, store.ErrInvalid, store.ErrThrottled, store.ErrRefused, store.ErrDenied, store.ErrMissing,
	store.ErrClosed,
}

// cancelled has no Unwrap, so that errors.Is stops here.
type cancelled struct{ error }

func (e cancelled) As(target any) bool { return errors.As(e.error, target) }

// OneLine makes a text fit for a log line: valid UTF-8, without line breaks, and
// of at most 600 bytes.
func OneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\uFFFD")), " ")
	return Cut(s, MaxText)
}

// Cut shortens a text to a number of bytes, and marks that with an ellipsis.
func Cut(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
