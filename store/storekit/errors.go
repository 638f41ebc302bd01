package storekit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slotlease/slotlease/internal/scrub"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// Secrets are what no error may show. The zero Secrets takes out what stands where secrets stand, such as
// the password of a URI; Hide adds one that is known, and Publish what may be shown though it is part of one.
// It may be used by many at once when it is complete.
type Secrets = scrub.Secrets

// Flaw is why a database is unfit for a ledger, or less fit. As an error it says what is wrong and what to
// do; Refuse is the error of a store that isn't used because of it, and Finding what Examine says of it.
type Flaw = fault.Flaw

// Exam collects the findings of store.Description.Examine, each in one line without secrets.
type Exam = fault.Exam

// Meaning is what a driver's error means for a ledger. The zero Meaning is an error after which the outcome
// of an append is unknown.
type Meaning struct {
	// Is is a sentinel of package store, or nil.
	Is error
	// NotStored says that an append surely did nothing, and never will: the server said so, or nothing was
	// sent. It isn't needed beside store.ErrConflict.
	NotStored bool
	// RetryAfter is the wait that the server asked for, along with store.ErrThrottled.
	RetryAfter time.Duration
	// Text is shown in place of the error's own, if it isn't empty. The error's own is then its detail, see
	// store.Detail. Secrets are taken out of both.
	Text string
	// Remedy is what to do about it, if the store knows: see store.Remedy. Secrets are taken out of it.
	Remedy string
	// TimedOut says that the driver gave up because its time was over, such as the deadline that it was given, a moment early:
	// then the error is context.DeadlineExceeded, unless the caller's context ended otherwise.
	TimedOut bool
	// Sound says that the error says nothing about the fitness of the database, such as a conflict.
	Sound bool
}

// OneLine makes a text fit for a log line: valid UTF-8, without line breaks, and of at most 600 bytes.
func OneLine(text string) string { return fault.OneLine(text) }

// show is an error with its meaning, without secrets. shown may be in its text.
func (r *Runner) show(ctx context.Context, err error, shown ...string) error {
	m := r.mean(err)
	if m.Text == "" && r.o.Text != nil {
		m.Text = r.o.Text(err)
	}
	text := cmp.Or(m.Text, err.Error())
	e := fault.Show(r.o.Secrets.Scrub(text, shown...), err)
	if m.Text != "" {
		e.Explain(r.o.Secrets.Scrub(err.Error(), shown...))
	}
	m.Remedy = cmp.Or(m.Remedy, OfCertificate(err, ""))
	e.Advise(r.o.Secrets.Scrub(m.Remedy, shown...))
	// A driver's own context says no more than the caller's.
	if errors.Is(e, context.Canceled) || errors.Is(e, context.DeadlineExceeded) {
		e.HideCancellation()
	}
	switch ended := fault.Ended(ctx); {
	case ended != nil:
		e.Say(ended)
	case m.TimedOut:
		e.Say(context.DeadlineExceeded)
	case r.closed.Load() && m.Is == nil && !m.NotStored:
		e.Name(store.ErrClosed)
	}
	if m.NotStored {
		e.Mean(store.ErrNotStored)
	}
	return e.Meaning(m.Is, m.RetryAfter)
}

// OfCertificate is what to do about an error that says that the certificate of a server wasn't accepted, and empty of any other:
// trust says how a store's users name its authority; empty: as most do. Some drivers hand on no more than the text.
func OfCertificate(err error, trust string) string {
	text := fmt.Sprint(err)
	switch {
	case strings.Contains(text, "x509: certificate has expired or is not yet valid"):
		return "renew the server's certificate or that of its authority, or set the clock of this machine"
	case strings.Contains(text, "tls: failed to verify certificate: "), strings.Contains(text, "x509: certificate "):
		return cmp.Or(trust, "let this machine trust the authority of the server's certificate (by SSL_CERT_FILE on Linux, or by the URI where that can name one), and name the server as the certificate does")
	}
	return ""
}

// mean is the meaning of an error: of one that has a sentinel already, or else by the store's own rules.
func (r *Runner) mean(err error) Meaning {
	for _, known := range []error{store.ErrConflict, store.ErrNotFound, store.ErrWentBack, store.ErrRefused, store.ErrMissing, store.ErrDenied, store.ErrInvalid, store.ErrClosed, store.ErrThrottled} {
		if errors.Is(err, known) {
			sound := errors.Is(known, store.ErrConflict) || errors.Is(known, store.ErrNotFound) || errors.Is(known, store.ErrWentBack)
			return Meaning{Is: known, NotStored: errors.Is(err, store.ErrNotStored), Sound: sound}
		}
	}
	if r.o.Meaning == nil {
		return Meaning{NotStored: errors.Is(err, store.ErrNotStored)}
	}
	m := r.o.Meaning(err)
	m.NotStored = m.NotStored || errors.Is(err, store.ErrNotStored)
	return m
}

// NotStored is an error of an operation that surely stored nothing, and never will, such as one before anything was sent:
// it matches store.ErrNotStored, too. The text is that of err.
func NotStored(err error) error { return also{err, store.ErrNotStored} }

// Final is an error against which no waiting helps: it matches store.ErrFinal, too. The text is that of err.
func Final(err error) error { return also{err, store.ErrFinal} }

// also is an error that matches a sentinel, too.
type also struct {
	error

	sentinel error
}

func (e also) Unwrap() []error { return []error{e.error, e.sentinel} }
