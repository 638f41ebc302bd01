package store

import (
	"context"
	"errors"
	"fmt"
)

// ErrWentBack: the record right below the one that was to be appended is not the one that its writer has read or
// written. The store has lost what it had acknowledged: it was flushed, restored, or failed over to a copy that lacked
// it. Nothing was stored; it comes along with ErrNotStored.
var ErrWentBack = errors.New("the store went back")

// Follower is a Ledger that appends a record only above the one that its writer knows, in one atomic step. So the holder of
// a lease learns from its next append that the store has lost records. Of other ledgers workers read the newest record
// before they extend a lease.
type Follower interface {
	// AppendAfter is Append while the record at r.Seq-1 is stored, with the claim, the kind and the instance of prev; nothing
	// else of it is compared. It returns ErrConflict if the key of r exists, whatever is below, and else an error that matches
	// ErrWentBack and ErrNotStored if the record below is missing or another one, or can't be read. prev has been read or
	// appended by the caller: if CheckAfter(r, prev) fails, the error is ErrInvalid, as that of Append if r.Check does. A
	// ledger that wraps others returns an error that matches errors.ErrUnsupported if the one inside can't do this; so does one
	// that can't look into prev's document. Nothing is stored then, and workers append without the comparison.
	AppendAfter(ctx context.Context, r, prev Record) error
}

// CheckAfter returns nil if r may be appended right above prev, a record that can be obeyed: of the same worker type, with
// the Seq before. The error wraps ErrInvalid.
func CheckAfter(r, prev Record) error {
	if err := prev.CheckEnvelope(); err != nil {
		return fmt.Errorf("the record below: %w", err)
	}
	if prev.WorkerType != r.WorkerType || prev.Seq != r.Seq-1 {
		return fmt.Errorf("%w: %s is not right above %s", ErrInvalid, Key(r.WorkerType, r.Seq), Key(prev.WorkerType, prev.Seq))
	}
	return nil
}

// SameRecord reports whether two records of a key are the same one, as AppendAfter compares them: by claim, kind and instance.
func SameRecord(a, b Record) bool {
	return a.Claim == b.Claim && a.Kind == b.Kind && a.InstanceID == b.InstanceID
}

// WentBack is the error of AppendAfter for a record that isn't right above prev any more.
func WentBack(prev Record) error {
	return fmt.Errorf("%w, and %w: %s of %.80q, claim %.64q, is no longer in it", ErrWentBack, ErrNotStored, Key(prev.WorkerType, prev.Seq), prev.InstanceID, prev.Claim)
}

// AsFollower returns a ledger as a Follower; nil if it isn't one, or wraps one that isn't.
func AsFollower(l Ledger) Follower {
	f, ok := As[Follower](l)
	// What is invalid is not sent.
	if !ok || errors.Is(f.AppendAfter(context.Background(), Record{}, Record{}), errors.ErrUnsupported) {
		return nil
	}
	return f
}
