package storekit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// service is what the store of this example is for: named objects, and a clock. A store has a driver's client here.
type service struct {
	mu      sync.Mutex
	objects map[string][]byte
	names   []string // sorted
	clock   clock.Clock
	// versioned keeps what is overwritten. Such a service keeps no ledger.
	versioned bool
}

func newService() *service { return &service{objects: map[string][]byte{}, clock: clock.New()} }

// status is the error of the service.
type status int

func (s status) Error() string { return fmt.Sprintf("status %d", int(s)) }

const (
	notFound   status = 404
	exists     status = 412
	throttling status = 429
)

// call is one request. Its reply has the service's time.
func (s *service) call(ctx context.Context, do func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	storekit.Note(ctx, s.stamp())
	return do()
}

func (s *service) stamp() store.Stamp {
	return store.Stamp{Time: s.clock.Now().UTC().Round(0).Truncate(time.Millisecond), Granularity: time.Millisecond, Server: "shelf"}
}

func (s *service) put(name string, body []byte) {
	if i, there := slices.BinarySearch(s.names, name); !there {
		s.names = slices.Insert(s.names, i, name)
	}
	s.objects[name] = body
}

// objects are the service as the kit wants it. Create is the atomic operation that all depends on.
type objects struct{ *service }

func (o objects) Create(ctx context.Context, name string, body []byte) error {
	return o.call(ctx, func() error {
		if _, there := o.objects[name]; there {
			return exists
		}
		o.put(name, body)
		return nil
	})
}

func (o objects) Replace(ctx context.Context, name string, body []byte) error {
	return o.call(ctx, func() error { o.put(name, body); return nil })
}

func (o objects) Read(ctx context.Context, name string) (body []byte, err error) {
	err = o.call(ctx, func() error {
		var there bool
		if body, there = o.objects[name]; !there {
			return fmt.Errorf("%w: %w", store.ErrNotFound, notFound)
		}
		return nil
	})
	return body, err
}

func (o objects) List(ctx context.Context, prefix, after string, _ int, visit func(storekit.Object) bool) error {
	var names []string
	if err := o.call(ctx, func() error { names = slices.Clone(o.names); return nil }); err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && name > after && !visit(storekit.Object{Name: name}) {
			break
		}
	}
	return nil
}

func (o objects) Delete(ctx context.Context, name string) (there bool, err error) {
	err = o.call(ctx, func() error {
		var i int
		if i, there = slices.BinarySearch(o.names, name); there {
			o.names = slices.Delete(o.names, i, i+1)
			delete(o.service.objects, name)
		}
		return nil
	})
	return there, err
}

func (o objects) Now(context.Context) (store.Stamp, error) { return o.stamp(), nil }

func (o objects) Close() error { return nil }

// meaning is what an error of the service means. What isn't known here leaves an append unknown.
func meaning(err error) storekit.Meaning {
	switch s, _ := errors.AsType[status](err); s {
	case exists:
		return storekit.Meaning{Is: store.ErrConflict, Sound: true}
	case throttling:
		return storekit.Meaning{Is: store.ErrThrottled, NotStored: true, RetryAfter: time.Second, Sound: true}
	case notFound: // Read says store.ErrNotFound itself.
	}
	return storekit.Meaning{}
}

// openShelf is the store's Open.
func openShelf(s *service, password string) store.Ledger {
	check := func(context.Context) error {
		if s.versioned {
			return storekit.Flaw{Check: "versions", What: "the shelf keeps versions, and takes each object", Remedy: "use another shelf"}.Refuse()
		}
		return nil
	}
	var secrets storekit.Secrets
	secrets.Hide(password)
	fitness := storekit.NewFitness(s.clock, check)
	runner := storekit.NewRunner(storekit.RunnerOptions{Store: "shelf", Secrets: secrets, Meaning: meaning, Fitness: fitness})
	return storekit.OnObjects(storekit.ObjectsOptions{Objects: objects{s}, Runner: runner, Folder: "here/", Fitness: fitness})
}

// A whole store: of a service that has named objects, and creates one unless it exists.
func Example() {
	ctx := context.Background()
	ledger := openShelf(newService(), "hunter2hunter2")
	start := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	record := store.Record{
		WorkerType: "invoice-export", Seq: 1, Kind: store.KindGrant, InstanceID: "host-1", Claim: "6f1ed002ab5595859014ebf0951522d9",
		WindowStart: start, WindowEnd: start.Add(5 * time.Minute), Token: start.UnixMilli(),
	}
	fmt.Println(ledger.Append(ctx, record))
	fmt.Println(ledger.Append(ctx, record))

	unfit := newService()
	unfit.versioned = true
	fmt.Println(openShelf(unfit, "hunter2hunter2").Append(ctx, record))
	// Output:
	// <nil>
	// shelf: append invoice-export:00000000000000000001: key exists: status 412
	// shelf: append invoice-export:00000000000000000001: store refused: the shelf keeps versions, and takes each object: use another shelf
}

func TestTheExampleKeepsTheContractOfAStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		s := newService()
		plant := func(name string, document []byte) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.put("here/"+name, document)
		}
		return storetest.Harness{
			Open: func(testing.TB) store.Ledger { return openShelf(s, "hunter2hunter2") },
			Plant: func(t testing.TB, workerType string, seq int64, fields map[string]any) {
				t.Helper()
				plant(storekit.RecordName(workerType, seq), storetest.Document(t, map[string]any{"workerType": workerType, "seq": seq}, fields))
			},
			PlantPresence: func(t testing.TB, workerType, id string, fields map[string]any) {
				t.Helper()
				plant(storekit.PresenceName(workerType, id), storetest.Document(t, map[string]any{"id": storekit.PresenceKey(workerType, id), "workerType": workerType}, fields))
			},
			Skips: map[string]string{
				"readers": "all handles may write", "attendance/a reader*": "all handles may write",
				"watch": "it gives no hints", "two paths": "there is one", "foreign constraints": "nobody else gives it any",
			},
			FreeStamp: true,
			Rounds:    100,
		}
	})
}
