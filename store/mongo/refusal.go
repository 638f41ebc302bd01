package mongo

import (
	"context"
	"errors"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
)

// sending counts how often an append went out to a server.
type sending struct{ inserts atomic.Int32 }

// sendingKey is the context key of an append's sending.
type sendingKey struct{}

func (s *sending) watch(ctx context.Context) context.Context {
	return context.WithValue(ctx, sendingKey{}, s)
}

// noteSending is part of the driver's command monitor, and counts inserts.
func noteSending(ctx context.Context, command string) {
	if s, ok := ctx.Value(sendingKey{}).(*sending); ok && command == "insert" {
		s.inserts.Add(1)
	}
}

// judge adds store.ErrNotStored to the error of an append that surely did nothing: it was
// denied or refused before anything was sent, as by a login that failed, or it was sent once,
// and the server refused it for lack of a right, or for what the collection is. A server checks
// rights before it runs a command:
// https://github.com/mongodb/mongo/blob/master/src/mongo/db/auth/README.md
//
// A refusal says nothing about an earlier try. The driver repeats a write whose connection was
// lost, and the first one may have been stored. watched is false for a client of the caller's
// own, whose sendings aren't counted.
func (s *sending) judge(err error, watched bool) error {
	denied := errors.Is(err, store.ErrDenied)
	if !watched || !denied && !errors.Is(err, store.ErrRefused) {
		return err
	}
	_, unconfirmed := errors.AsType[mongo.WriteException](err)
	switch n := s.inserts.Load(); {
	case n == 0:
	case n == 1 && denied && !unconfirmed && !isLogin(err) && hasCode(err, codeUnauthorized, codeAtlasError):
	case n == 1 && keptOut(err):
	default:
		return err
	}
	return storekit.NotStored(err)
}

// keptOut reports that an error is the reply of a server which didn't insert a record because of
// what the collection is: a view, a time series, or one with a validator or a unique index that
// keeps the record out. writeErrors are those of writes that failed:
// https://www.mongodb.com/docs/manual/reference/command/insert/#mongodb-data-insert.writeErrors
//
// Or the record's key is that of a foreign document.
//
// With a write-concern error beside it, a reply is no proof: it says that something wasn't
// confirmed.
func keptOut(err error) bool {
	if k, ok := errors.AsType[keyKept](err); ok {
		we, refused := errors.AsType[mongo.WriteException](k.reply)
		return refused && we.WriteConcernError == nil && len(we.WriteErrors) == 1 || isReply(k.reply)
	}
	if we, ok := errors.AsType[mongo.WriteException](err); ok {
		return we.WriteConcernError == nil && len(we.WriteErrors) == 1 && unfitReply(err, we.WriteErrors[0].Code) != nil
	}
	ce, ok := errors.AsType[mongo.CommandError](err)
	return ok && isReply(err) && unfitReply(err, int(ce.Code)) != nil
}
