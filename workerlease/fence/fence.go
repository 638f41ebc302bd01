// Package fence says what a resource answers to a holder whose lease is no longer the
// newest, and how a resource can notice. The packages below it do so for SQL, MongoDB,
// Cosmos DB and HTTP.
//
// # What fencing is
//
// A process may pause after its last look at the clock, and write when its lease is over.
// No lease can prevent that. But each lease has a token that is higher than all before it.
// A resource that stores the highest token it has seen, and refuses lower ones, is safe
// from late writes. See M. Kleppmann, "How to do distributed locking" (2016), and the
// sequencers in M. Burrows, "The Chubby lock service" (2006).
//
// The check, the storing of the token and the protected write must be one atomic step.
// If the check comes first and the write later, the pause may fall between them.
//
// # In order of preference
//
//  1. Put the check into the atomic write of the resource itself: sqlfence, mongofence
//     and cosmosfence.
//  2. Make writes idempotent: give each an idempotency key, made from the worker type and
//     the slot. Then a late write repeats what was done.
//  3. Look at the lease right before the write (Lease.Check), and give the write a
//     deadline well before the lease's. That makes late writes rare, not impossible.
//
// # What is guaranteed
//
// Once a write with a token has been stored, no write with a lower token is stored under
// the same name. An old holder may still write until the new holder's first write: so
// begin with one. Nothing is guaranteed of writers that don't use the fence, after a
// restored backup, or if the row or document that holds the fence is deleted. Tokens of
// different worker types can't be compared: one name belongs to one worker type.
package fence

import (
	"errors"
	"fmt"
)

// ErrStale is what every [StaleError] is, to errors.Is.
var ErrStale = errors.New("stale fencing token")

// StaleError says that a resource has seen a newer token, and that nothing was written.
// The lease is over: don't try again.
type StaleError struct {
	Name   string // of the fence
	Token  int64  // that was refused
	Newest int64  // that the resource had seen
}

// Error names the fence and both tokens.
func (e *StaleError) Error() string {
	return fmt.Sprintf("fence %q: the token %d is stale, since %d has been seen", e.Name, e.Token, e.Newest)
}

// Is reports whether target is [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// MaxName is the length of the longest name of a fence, in bytes.
const MaxName = 255

// Validate returns an error unless name has 1 to [MaxName] bytes and token is at least 1:
// 0 is the token of a lease that was never granted.
func Validate(name string, token int64) error {
	switch {
	case name == "":
		return errors.New("fence: the name is empty")
	case len(name) > MaxName:
		return fmt.Errorf("fence: the name has %d bytes, at most %d are allowed", len(name), MaxName)
	case token < 1:
		return fmt.Errorf("fence %q: the token is %d, it must be at least 1", name, token)
	}
	return nil
}

// Compare returns a [StaleError] if newest is higher than token.
func Compare(name string, token, newest int64) error {
	if newest > token {
		return &StaleError{Name: name, Token: token, Newest: newest}
	}
	return nil
}
