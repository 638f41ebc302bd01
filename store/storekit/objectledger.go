package storekit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/document"
)

// listPage is how many names a list is asked for if the number isn't known.
const listPage = 1000

// ObjectsOptions of OnObjects. Objects and Runner are required.
type ObjectsOptions struct {
	Objects Objects
	// Runner performs the operations.
	Runner *Runner
	// Folder is where the ledger's objects are: empty, or a name that ends with a slash.
	Folder string
	// Create creates what is missing (a bucket), at Init. nil: nothing.
	Create func(ctx context.Context) error
	// Fitness is checked by Init. nil: there is nothing to check.
	Fitness *Fitness
}

// ObjectLedger is a ledger of objects, one for each record and each presence. It is a store.Ledger, a store.Pager and
// a store.Roster. An append is one request, a tail one list and, where that shows no contents, one read for each
// record. Where a list shows that records are missing, or none, a tail is two lists, and more while others append and
// trim.
type ObjectLedger struct {
	o ObjectsOptions
}

// OnObjects returns a ledger. It sends nothing.
func OnObjects(o ObjectsOptions) *ObjectLedger { return &ObjectLedger{o} }

var (
	_ store.Ledger = (*ObjectLedger)(nil)
	_ store.Pager  = (*ObjectLedger)(nil)
	_ store.Roster = (*ObjectLedger)(nil)
)

// Init creates what is missing, and checks that the service can keep a ledger.
func (l *ObjectLedger) Init(ctx context.Context) error {
	_, err := RunUnchecked(ctx, l.o.Runner, "init", "", func(ctx context.Context) (none struct{}, err error) {
		if l.o.Create != nil {
			err = l.o.Create(ctx)
		}
		if err == nil && l.o.Fitness != nil {
			err = l.o.Fitness.Check(ctx)
		}
		return none, err
	})
	return err
}

// Append creates a record's object unless its key exists. If it returns nil, the time of the reply is on the receipt
// of ctx.
func (l *ObjectLedger) Append(ctx context.Context, r store.Record) error {
	err := r.Check()
	var body []byte
	if err == nil {
		body, err = Encode(r)
	}
	if err != nil {
		return l.o.Runner.Invalid("append", err)
	}
	stamp, err := Run(ctx, l.o.Runner, "append", store.Key(r.WorkerType, r.Seq), func(ctx context.Context) (store.Stamp, error) {
		ctx, stamp := Noting(ctx)
		err := l.o.Objects.Create(ctx, l.o.Folder+RecordName(r.WorkerType, r.Seq), body)
		return stamp(), err
	})
	if err == nil && !stamp.IsZero() {
		store.Tell(ctx, stamp)
	}
	return err
}

// Get returns the record at a key, by one read.
func (l *ObjectLedger) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	if err := checkKey(workerType, seq); err != nil {
		return store.Record{}, l.o.Runner.Invalid("get", err)
	}
	return Run(ctx, l.o.Runner, "get", store.Key(workerType, seq), func(ctx context.Context) (store.Record, error) {
		return l.read(ctx, workerType, seq)
	})
}

// checkKey refuses what can't be part of a record's name.
func checkKey(workerType string, seq int64) error {
	if err := store.CheckWorkerType(workerType); err != nil {
		return err
	}
	if seq < 1 || seq > store.MaxSeq {
		return fmt.Errorf("seq %d: %w", seq, store.ErrNotFound)
	}
	return nil
}

// read reads the object of a record.
func (l *ObjectLedger) read(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	body, err := l.o.Objects.Read(ctx, l.o.Folder+RecordName(workerType, seq))
	if err != nil {
		return store.Record{}, err
	}
	return decodeBody(workerType, seq, body), nil
}

// decodeBody reads the content of a record's object.
func decodeBody(workerType string, seq int64, body []byte) store.Record {
	if len(body) > MaxDocument {
		return document.Defective(workerType, seq, fmt.Errorf("the record is larger than any: it has more than %d bytes", MaxDocument))
	}
	return Decode(workerType, seq, body)
}

// Trim deletes the oldest records below a Seq, but never the head, one request each, by OldestFirst: so what a failure
// leaves below records that are gone, fewer than AtATime, the next Trim deletes first.
func (l *ObjectLedger) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	if err := store.CheckWorkerType(workerType); err != nil {
		return 0, l.o.Runner.Invalid("trim", err)
	}
	var deleted atomic.Int64
	_, err := Run(ctx, l.o.Runner, "trim", workerType, func(ctx context.Context) (none struct{}, err error) {
		head, _, err := l.list(ctx, workerType, span{}, 1)
		if err != nil || len(head) == 0 {
			return none, err
		}
		if before = min(before, head[0].seq); before <= 1 {
			return none, nil
		}
		old, err := l.trimmable(ctx, workerType, before)
		if err != nil {
			return none, err
		}
		return none, OldestFirst(len(old), func(i int) error {
			there, err := l.o.Objects.Delete(ctx, l.o.Folder+RecordName(workerType, old[i].seq))
			if there && err == nil {
				deleted.Add(1)
			}
			return err
		})
	})
	return int(deleted.Load()), err
}

// WorkerTypes lists the worker types that have records.
func (l *ObjectLedger) WorkerTypes(ctx context.Context) ([]string, error) {
	return Run(ctx, l.o.Runner, "list", "", func(ctx context.Context) ([]string, error) {
		folders, err := l.folders(ctx, l.o.Folder+recordFolder)
		if err != nil {
			return nil, err
		}
		folders = slices.DeleteFunc(folders, func(name string) bool { return store.CheckWorkerType(name) != nil })
		kept := make([]bool, len(folders))
		err = Several(len(folders), func(i int) error {
			found, _, err := l.list(ctx, folders[i], span{}, 1)
			kept[i] = len(found) > 0
			return err
		})
		types := []string{}
		for i, name := range folders {
			if kept[i] {
				types = append(types, name)
			}
		}
		slices.Sort(types)
		return types, err
	})
}

// folders lists the folders directly below a prefix.
func (l *ObjectLedger) folders(ctx context.Context, prefix string) (names []string, err error) {
	if f, ok := l.o.Objects.(Folders); ok {
		return f.Folders(ctx, prefix)
	}
	for after := ""; ; {
		name := ""
		err := l.o.Objects.List(ctx, prefix, after, 1, func(o Object) bool {
			name = strings.TrimPrefix(o.Name, prefix)
			return false
		})
		if err != nil || name == "" {
			return names, err
		}
		folder, _, inside := strings.Cut(name, "/")
		if after = prefix + name; inside {
			names = append(names, folder)
			after = prefix + folder + "0" // which comes after all names with a slash there
		}
	}
}

// Now reads the service's clock.
func (l *ObjectLedger) Now(ctx context.Context) (store.Stamp, error) {
	return Run(ctx, l.o.Runner, "now", "", func(ctx context.Context) (store.Stamp, error) {
		s, err := l.o.Objects.Now(ctx)
		if err == nil && s.IsZero() {
			err = errors.New("the reply has no time")
		}
		return s, err
	})
}

// Close ends the operations in progress, and closes the client.
func (l *ObjectLedger) Close(ctx context.Context) error {
	return l.o.Runner.Close(ctx, l.o.Objects.Close)
}
