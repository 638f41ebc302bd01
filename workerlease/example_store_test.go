package workerlease_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// shelf is a ledger of one's own. A real one keeps its records in a database, where Append
// is an insert that fails if the key exists. The suite in testutil/storetest checks it.
type shelf struct {
	mu      sync.Mutex
	records map[string]map[int64]store.Record // by worker type and Seq
}

func (s *shelf) Init(context.Context) error  { return nil }
func (s *shelf) Close(context.Context) error { return nil }

// Append is the one operation that must be atomic.
func (s *shelf) Append(_ context.Context, r store.Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.records[r.WorkerType][r.Seq]; taken {
		return store.ErrConflict
	}
	if s.records == nil {
		s.records = map[string]map[int64]store.Record{}
	}
	if s.records[r.WorkerType] == nil {
		s.records[r.WorkerType] = map[int64]store.Record{}
	}
	s.records[r.WorkerType][r.Seq] = r.Truncated() // to milliseconds, as all stores do
	return nil
}

func (s *shelf) Get(_ context.Context, workerType string, seq int64) (store.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.records[workerType][seq]
	if !found {
		return store.Record{}, store.ErrNotFound
	}
	return r, nil
}

func (s *shelf) Tail(_ context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var newest []store.Record
	for _, seq := range slices.Backward(slices.Sorted(maps.Keys(s.records[workerType]))) {
		if len(newest) == limit {
			break
		}
		newest = append(newest, s.records[workerType][seq])
	}
	return newest, store.Stamp{}, nil // The zero Stamp: workers ask Now.
}

func (s *shelf) Trim(_ context.Context, workerType string, before int64) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seqs := slices.Sorted(maps.Keys(s.records[workerType]))
	for _, seq := range seqs[:max(len(seqs)-1, 0)] { // never the head
		if seq < before && n < store.TrimBatch {
			delete(s.records[workerType], seq)
			n++
		}
	}
	return n, nil
}

func (s *shelf) WorkerTypes(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.records)), nil
}

// Now is the clock that all workers measure: the database server's.
func (s *shelf) Now(context.Context) (store.Stamp, error) {
	return store.Stamp{Time: time.Now().UTC().Truncate(time.Millisecond), Granularity: time.Millisecond, Server: "shelf"}, nil
}

// Keep leases in a store of your own: a type with the methods of store.Ledger.
func ExampleNewClient_ownStore() {
	client := workerlease.NewClient(&shelf{}, workerlease.ClientOptions{})
	claim, err := client.TryClaim(context.Background(), workerlease.Options{WorkerType: "migration", InstanceID: "pod-1"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(claim.Lease.InstanceID, "has the slot:", claim.Lease.Valid())
	if err := claim.Release(context.Background()); err != nil {
		log.Print(err)
	}
	// Output:
	// pod-1 has the slot: true
}
