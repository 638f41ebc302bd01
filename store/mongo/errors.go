package mongo

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// Error codes of servers. The names are MongoDB's.
const (
	codeUnauthorized         = 13
	codeAuthenticationFailed = 18
	codeUserNotFound         = 11
	codeNamespaceNotFound    = 26
	codeNamespaceExists      = 48
	codeCommandNotFound      = 59
	// codeCommandNotSupported is what Cosmos DB says of commands that it doesn't have; see
	// https://learn.microsoft.com/azure/cosmos-db/mongodb/error-codes-solutions.
	codeCommandNotSupported = 115
	codeNotImplemented      = 238
	// codeFeatureNotSupported is what Amazon DocumentDB says of what it doesn't have; see
	// https://github.com/Graylog2/graylog2-server/issues/5927.
	codeFeatureNotSupported = 303
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

// remedyDenied is what to do about a denial.
const remedyDenied = "check user, password and authSource in the URI, and the user's role (readWrite; to inspect: read)"

// lastWord is how long an operation that is over waits for the driver's error, which says what it waited for. The
// driver notices the end of a context at once.
const lastWord = 300 * time.Millisecond

// newRunner makes the runner of the operations. What the ledger hides must be known.
func (l *Ledger) newRunner() {
	l.runner = storekit.NewRunner(storekit.RunnerOptions{
		Store: "mongo", Secrets: l.secrets, Grace: lastWord, Clock: l.fitness.clock,
		Text: func(err error) string { return l.login.message(err) },
		// After an error without a sentinel the outcome is unknown, above all for an append: every time-out, every
		// lost connection, every election, and every write that was made but not confirmed by a majority (a
		// write-concern error).
		Meaning: func(err error) storekit.Meaning {
			// The driver hands the context's deadline to the server and to the connection; either may be a
			// moment ahead of the context itself.
			m := storekit.Meaning{Is: meaning(err), RetryAfter: retryAfter(err), TimedOut: mongo.IsTimeout(err), Remedy: l.login.remedy(err)}
			if errors.Is(m.Is, store.ErrDenied) {
				m.Remedy = remedyDenied
			}
			return m
		},
	})
}

// failed is the error of an operation on a key that isn't performed by run.
func (l *Ledger) failed(ctx context.Context, op, key string, err error) error {
	return l.runner.Failed(callers(ctx), op, key, l.seek(err))
}

// meaning is the sentinel that fits a driver's error, or nil.
func meaning(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mongo.ErrClientDisconnected):
		return store.ErrClosed
	}
	for _, code := range errorCodes(err) {
		if unfit := unfitReply(err, code); unfit != nil {
			return unfit
		}
		switch code {
		case codeDuplicate, codeDuplicateOnUpdate:
			return store.ErrConflict
		case codeThrottled, codeRateLimited:
			return store.ErrThrottled
		case codeUnauthorized, codeAuthenticationFailed, codeUserNotFound:
			return store.ErrDenied
		case codeAtlasError:
			// Atlas says so much by it, also that its quota is used up.
			if atlasDenies.MatchString(err.Error()) {
				return store.ErrDenied
			}
		}
	}
	if _, denied := loginDenied(err); denied {
		return store.ErrDenied
	}
	return nil
}

// atlasDenies matches what Atlas says of a login or a right that is missing.
var atlasDenies = regexp.MustCompile(`(?i)bad auth|authentication failed|not allowed to do action|not authorized`)

// errorCodes are the server's codes in an error, but those of a write-concern
// error: such a write was made, and its code says nothing about the key.
func errorCodes(err error) (codes []int) {
	if we, ok := errors.AsType[mongo.WriteException](err); ok {
		for _, e := range we.WriteErrors {
			codes = append(codes, e.Code)
		}
		return codes
	}
	if ce, ok := errors.AsType[mongo.CommandError](err); ok {
		codes = append(codes, int(ce.Code))
	}
	return codes
}

// hasCode reports whether the server answered with one of some codes.
func hasCode(err error, any ...int) bool {
	return slices.ContainsFunc(errorCodes(err), func(c int) bool { return slices.Contains(any, c) })
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
