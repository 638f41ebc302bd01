package workerlease_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// A worker of a client with fewer leases goes first.
func TestTheFewestLeasesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		fleet := newFleet(ledger, func(o *workerlease.Options) { o.Policy = workerlease.FewestLeases() })
		for i := range 2 {
			fleet.join(t, i, 8, ledger.Handle())
		}
		at(4*time.Minute + 30*time.Second)
		if held := fleet.held(); len(held) != 2 || max(held[0], held[1])-min(held[0], held[1]) > 4 {
			t.Errorf("the clients hold %v of 8 leases", held)
		}
	})
}

// fleet are clients, each of which has a worker for each of many types.
type fleet struct {
	ledger  *memory.Ledger
	options func(*workerlease.Options)
	workers map[int][]*worker
}

func newFleet(ledger *memory.Ledger, options func(*workerlease.Options)) *fleet {
	return &fleet{ledger, options, map[int][]*worker{}}
}

// join starts the workers of a client.
func (f *fleet) join(t *testing.T, client, types int, ledger store.Ledger) {
	t.Helper()
	c := workerlease.NewClient(ledger, workerlease.ClientOptions{Roster: true})
	for i := range types {
		o := workerlease.Options{WorkerType: fmt.Sprintf("type-%02d", i), InstanceID: fmt.Sprint("client-", client), LeaseInterval: time.Minute}
		f.options(&o)
		f.workers[client] = append(f.workers[client], start(t, setup{Options: o, ledger: ledger, client: c}))
	}
}

// leave stops the workers of a client.
func (f *fleet) leave(t *testing.T, client int) {
	t.Helper()
	for _, w := range f.workers[client] {
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Error(err)
		}
	}
	delete(f.workers, client)
}

// held are the numbers of leases that each client holds.
func (f *fleet) held() map[int]int {
	held := map[int]int{}
	for client, workers := range f.workers {
		held[client] = 0
		for _, w := range workers {
			if w.IsHolder() {
				held[client]++
			}
		}
	}
	return held
}

// even fails if some client doesn't hold its share of leases, within two.
func (f *fleet) even(t *testing.T, types int, when string) {
	t.Helper()
	held := f.held()
	sum := 0
	for _, client := range slices.Sorted(maps.Keys(held)) {
		n := held[client]
		if share := types / len(held); n < share-2 || n > (types+len(held)-1)/len(held)+2 {
			t.Errorf("%s, client %d holds %d of %d leases: %v", when, client, n, types, held)
		}
		sum += n
	}
	if sum != types {
		t.Errorf("%s, %d of %d leases are held: %v", when, sum, types, held)
	}
}

// Types spread evenly over clients, within two slots after one comes, goes or dies.
func TestTypesSpreadEvenly(t *testing.T) {
	suites.SameGoroutines(t)
	for _, continuous := range []bool{false, true} {
		bubble(t, fmt.Sprint("continuous=", continuous), func(t *testing.T) {
			const types = 64
			ledger := memory.New(memory.Options{})
			f := newFleet(ledger, func(o *workerlease.Options) { o.TieBreak, o.Continuous = priority.Spread, continuous })
			for i := range 4 {
				f.join(t, i, types, ledger.Handle())
			}
			at(2*time.Minute + 30*time.Second)
			f.even(t, types, "two slots after the start")
			dies := spy(ledger)
			f.join(t, 4, types, dies)
			at(4*time.Minute + 30*time.Second)
			f.even(t, types, "two slots after one has joined")
			f.leave(t, 0)
			at(6*time.Minute + 30*time.Second)
			f.even(t, types, "two slots after one has left")
			dies.set(func() { dies.dead = true })
			delete(f.workers, 4)
			at(9*time.Minute + 30*time.Second)
			f.even(t, types, "three slots after one has died")
			before := f.holders()
			at(29*time.Minute + 30*time.Second)
			if !maps.Equal(f.holders(), before) {
				t.Error("types have moved though nobody came or went")
			}
		})
	}
}

// holders is who holds each type.
func (f *fleet) holders() map[string]int {
	by := map[string]int{}
	for client, workers := range f.workers {
		for _, w := range workers {
			if w.IsHolder() {
				by[w.Status().WorkerType] = client
			}
		}
	}
	return by
}
