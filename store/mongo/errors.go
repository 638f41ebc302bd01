package mongo

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/internal/scrub"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/fault"
)

// Error codes of servers. The names are MongoDB's.
const (
	codeUnauthorized         = 13
	codeAuthenticationFailed = 18
	codeUserNotFound         = 11
	codeNamespaceNotFound    = 26
	codeNamespaceExists      = 48
	codeCommandNotFound      = 59
	// codeRateLimited (IngressRequestRateLimitExceeded) is MongoDB's own way to
	// say that it has too much to do.
	codeRateLimited = 462
	codeAtlasError  = 8000
	codeDuplicate   = 11000
	// codeDuplicateOnUpdate is the same from very old servers.
	codeDuplicateOnUpdate = 11001
	// codeThrottled is Cosmos DB's 429.
	codeThrottled = 16500
)

// failed is the error of an operation on a key.
func (l *Ledger) failed(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	return fault.Of("mongo", op, key, classify(ctx, err, l.secrets, key))
}

// classify gives a driver's error its meaning for a ledger. After an error without a
// sentinel the outcome is unknown, above all for an append: every time-out, every lost
// connection, every election, and every write that was made but not confirmed by a
// majority (a write-concern error). shown may be in its text.
func classify(ctx context.Context, err error, secrets scrub.Secrets, shown ...string) error {
	e := fault.Show(secrets.Scrub(err.Error(), shown...), err)
	ctx = callers(ctx)
	switch ended := ctx.Err(); {
	case ended != nil && !errors.Is(err, ended):
		if errors.Is(err, context.Canceled) {
			e.HideCancellation() // by this package
		}
		e.Name(ended)
	case ended == nil && mongo.IsTimeout(err) && !errors.Is(err, context.DeadlineExceeded):
		// The driver hands the context's deadline to the server and to the
		// connection; either may be a moment ahead of the context itself.
		e.Name(context.DeadlineExceeded)
	}
	return e.Meaning(meaning(err), retryAfter(err))
}

// meaning is the sentinel that fits a driver's error, or nil.
func meaning(err error) error {
	if errors.Is(err, mongo.ErrClientDisconnected) {
		return store.ErrClosed
	}
	codes, confirmed := errorCodes(err)
	for _, code := range codes {
		if unfit := unfitReply(err, code); unfit != nil {
			return unfit
		}
		switch code {
		case codeDuplicate, codeDuplicateOnUpdate:
			return store.ErrConflict
		case codeThrottled, codeRateLimited:
			return store.ErrThrottled
		case codeUnauthorized, codeAuthenticationFailed, codeUserNotFound, codeAtlasError:
			return store.ErrDenied
		}
	}
	if !confirmed {
		return nil
	}
	if text := err.Error(); strings.Contains(text, "auth error:") || strings.Contains(text, "unable to authenticate") {
		return store.ErrDenied
	}
	return nil
}

// errorCodes are the server's codes in an error, but those of a write-concern
// error: such a write was made, and its code says nothing about the key.
// confirmed is false if there is a write-concern error.
func errorCodes(err error) (codes []int, confirmed bool) {
	if we, ok := errors.AsType[mongo.WriteException](err); ok {
		for _, e := range we.WriteErrors {
			codes = append(codes, e.Code)
		}
		return codes, we.WriteConcernError == nil
	}
	if ce, ok := errors.AsType[mongo.CommandError](err); ok {
		codes = append(codes, int(ce.Code))
	}
	return codes, true
}

// hasCode reports whether the server answered with one of some codes.
func hasCode(err error, any ...int) bool {
	codes, _ := errorCodes(err)
	return slices.ContainsFunc(codes, func(c int) bool { return slices.Contains(any, c) })
}

var retryAfterMs = regexp.MustCompile(`RetryAfterMs=(\d{1,7})\b`)

// retryAfter is the wait that Cosmos DB names in the text of its 16500.
func retryAfter(err error) time.Duration {
	m := retryAfterMs.FindStringSubmatch(err.Error())
	if m == nil {
		return 0
	}
	ms, _ := strconv.Atoi(m[1])
	return time.Duration(ms) * time.Millisecond
}
