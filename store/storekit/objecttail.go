package storekit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

// mostLists is how often a tail begins anew, since the newest record was trimmed before it was read or no list confirms
// the one before, and mostDoubts how often it waits for a list that does.
const (
	mostLists  = 10
	mostDoubts = 4
)

// tailed is the result of Tail.
type tailed struct {
	records []store.Record
	stamp   store.Stamp
}

// Tail returns the newest records, newest first, with the time of the list's reply.
func (l *ObjectLedger) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return nil, store.Stamp{}, l.o.Runner.Invalid("tail", err)
	}
	got, err := Run(ctx, l.o.Runner, "tail", workerType, func(ctx context.Context) (got tailed, err error) {
		if limit < 1 {
			return got, nil
		}
		ctx, stamp := Noting(ctx)
		var before []listed
		for n := range mostLists {
			found, unreachable, err := l.list(ctx, workerType, span{}, limit)
			got.stamp = stamp()
			if err != nil {
				return got, err
			}
			// An empty list may have missed what was appended while the record that it passed was trimmed.
			if (len(found) == 0 || gaps(found, limit)) && (n == 0 || !confirms(found, before)) {
				if before = found; n < mostDoubts || len(found) == 0 {
					continue
				}
				// Somebody appends all the time. Workers append above what they have seen, so the records below the newest were
				// there before it, but for an append that comes so late that its key was trimmed.
				newest := found[0].seq
				if found, _, err = l.list(ctx, workerType, span{below: newest + 1}, limit); err != nil {
					return got, err
				}
				if len(found) == 0 || found[0].seq != newest {
					continue // It was trimmed itself, so there is a newer one.
				}
			}
			if got.records, err = l.contents(ctx, workerType, found, AtATime); err != nil {
				return tailed{}, err
			}
			if len(found) > 0 && (len(got.records) == 0 || got.records[0].Seq != found[0].seq) {
				before, got.records = found, nil
				continue // What is the newest by now isn't in that list.
			}
			if unreachable != "" {
				got.records = slices.Insert(got.records, 0, document.Unreachable(workerType, unreachable))
			}
			return got, nil
		}
		return tailed{}, errVanish
	})
	return got.records, got.stamp, err
}

// gaps reports that records are missing in a list, or below one that isn't as long as it may be. A trim may be the reason,
// and so may be that the list is no snapshot: what was appended while it was made may be in it without the record before,
// which was there earlier.
func gaps(found []listed, limit int) bool {
	for i, r := range found[:max(len(found)-1, 0)] {
		if found[i+1].seq != r.seq-1 {
			return true
		}
	}
	n := len(found)
	return n > 0 && n < limit && found[n-1].seq > 1
}

// confirms reports that a list shows what the one before it did, but for records that were trimmed meanwhile. Then the
// ledger had all of them when the list began, and no others that weren't trimmed since; unless a record was trimmed, and
// another appended late to its key.
func confirms(found, before []listed) bool {
	if len(found) == 0 || len(before) == 0 {
		return len(found) == len(before)
	}
	if found[0].seq != before[0].seq {
		return false
	}
	for _, r := range found {
		if !slices.ContainsFunc(before, func(b listed) bool { return b.seq == r.seq }) {
			return false
		}
	}
	return true
}

// listed is a record in a list.
type listed struct {
	seq  int64
	body []byte
}

// span are the Seqs above one and below another; a below of 0 means all above.
type span struct{ above, below int64 }

// list lists the records of a span, newest first and at most limit of them, or all if that is 0; and an unreachable name,
// if it meets one.
func (l *ObjectLedger) list(ctx context.Context, workerType string, of span, limit int) (found []listed, unreachable string, err error) {
	prefix := l.o.Folder + recordFolder + workerType + "/"
	after := ""
	if of.below > 0 && of.below <= store.MaxSeq {
		after = l.o.Folder + RecordName(workerType, of.below)
	}
	passed := 0
	err = l.o.Objects.List(ctx, prefix, after, limit, func(o Object) bool {
		if seq, ok := seqOf(strings.TrimPrefix(o.Name, prefix)); ok {
			if seq <= of.above {
				return false
			}
			found = append(found, listed{seq, o.Body})
		} else {
			passed++
			if unreachable == "" {
				unreachable = strings.TrimPrefix(o.Name, l.o.Folder)
			}
		}
		return (limit == 0 || len(found) < limit) && passed <= document.MaxUnreachable
	})
	if err == nil && passed > document.MaxUnreachable {
		err = fmt.Errorf("more than %d objects such as %.120q that are no records: remove them", document.MaxUnreachable, unreachable)
	}
	return found, unreachable, err
}

// contents are the records of a list, in its order, by so many reads at a time. One that was trimmed meanwhile is left out.
func (l *ObjectLedger) contents(ctx context.Context, workerType string, found []listed, atATime int) ([]store.Record, error) {
	records := make([]store.Record, len(found))
	err := several(len(found), atATime, func(i int) (err error) {
		if found[i].body != nil {
			records[i] = decodeBody(workerType, found[i].seq, found[i].body)
			return nil
		}
		records[i], err = l.read(ctx, workerType, found[i].seq)
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(r store.Record) bool { return r.WorkerType == "" }), nil
}
