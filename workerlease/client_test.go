package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// Whatever was never made, or is nil, says so, or does nothing.
func TestZeroValuesDoNotPanic(t *testing.T) {
	ctx := suites.Deadline(t)
	for _, v := range []any{
		workerlease.Lease{},
		workerlease.Options{},
		workerlease.Timing{},
		workerlease.Status{},
		workerlease.Charges(nil),
		event.Worker{},
		event.ObserverFunc(nil), event.Observers(),
		workerlease.OptionError{},
		workerlease.Candidate{},
		event.Holder{},
		new(workerlease.Client), (*workerlease.Client)(nil), new(workerlease.WorkerLease), (*workerlease.WorkerLease)(nil),
		new(workerlease.Claim), (*workerlease.Claim)(nil), new(workerlease.Score), (*workerlease.Score)(nil), new(workerlease.OptionError),
		event.Started{},
	} {
		of := reflect.ValueOf(v)
		for i := range of.NumMethod() {
			name := fmt.Sprintf("%T.%s of %s", v, of.Type().Method(i).Name, map[bool]string{true: "nil", false: "zero"}[of.Kind() == reflect.Pointer && of.IsNil()])
			method := of.Method(i)
			var in []reflect.Value
			for n := range method.Type().NumIn() {
				arg := reflect.Zero(method.Type().In(n))
				if arg.Type() == reflect.TypeFor[context.Context]() {
					arg = reflect.ValueOf(ctx)
				}
				in = append(in, arg)
			}
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s panics: %v", name, p)
					}
				}()
				method.Call(in)
			}()
		}
	}
	var none *workerlease.WorkerLease
	<-none.Done()
	<-(&workerlease.Claim{}).Context().Done()
	for name, err := range map[string]error{
		"Complete":     (&workerlease.Claim{}).Complete(ctx),
		"Run":          new(workerlease.Client).Run(ctx, named("a", 0), nil),
		"Eligible":     (*workerlease.Score)(nil).Eligible(ctx),
		"a nil ledger": workerlease.NewClient(nil, workerlease.ClientOptions{}).Run(ctx, named("a", 0), nil),
	} {
		if err == nil {
			t.Errorf("%s() = nil, want an error", name)
		}
	}
}

// The ledger of example_store_test.go keeps what store.Ledger promises, as far as its
// users copy it: storetest asks for more, such as documents of other programs.
func TestTheStoreOfTheExampleKeepsTheContract(t *testing.T) {
	ctx, s := context.Background(), &shelf{}
	r := store.Record{
		WorkerType: "job", Kind: store.KindGrant, InstanceID: "a", Claim: "c",
		WindowStart: noon, WindowEnd: noon.AddDate(0, 0, 1), Token: noon.UnixMilli(),
	}
	for seq := range int64(3) {
		r.Seq = seq + 1
		must(t, s.Append(ctx, r))
	}
	if err := s.Append(ctx, r); err != store.ErrConflict {
		t.Errorf("Append to a key that exists = %v, want ErrConflict", err)
	}
	var seqs []int64
	tail, _, err := s.Tail(ctx, "job", 2)
	for _, r := range tail {
		seqs = append(seqs, r.Seq)
	}
	if !slices.Equal(seqs, []int64{3, 2}) || err != nil {
		t.Errorf("Tail = %v, %v, want 3 and 2", seqs, err)
	}
	if n, err := s.Trim(ctx, "job", 9); n != 2 || err != nil {
		t.Errorf("Trim = %d, %v, want all but the head", n, err)
	}
	if _, err := s.Get(ctx, "job", 1); err != store.ErrNotFound {
		t.Errorf("Get of a trimmed record = %v, want ErrNotFound", err)
	}
	if got, err := s.Get(ctx, "job", 3); got.Seq != 3 || err != nil {
		t.Errorf("Get of the head = %v, %v", got, err)
	}
	if types, err := s.WorkerTypes(ctx); !slices.Equal(types, []string{"job"}) || err != nil {
		t.Errorf("WorkerTypes = %q, %v", types, err)
	}
}

// The tests of clocks.Fake show that all has happened when Settle returns.
func TestSettleWaitsForCodeThatNeitherReturnsNorAsksForTheEndOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		client := newClient(&worker{}, setup{ledger: memory.New(memory.Options{})})
		w, err := client.StartLeasing(t.Context(), workerlease.Options{WorkerType: "job"}, workerlease.Callbacks{
			LeaseAllocated: func(context.Context, workerlease.Lease) { <-let },
		})
		must(t, err)
		at(4 * time.Minute)
		if next, err := client.Settle(t.Context()); err != nil || next.Sub(t0) > 5*time.Minute || !next.After(time.Now()) {
			t.Errorf("Settle = %v, %v; want the opening of claims", next, err)
		}
		at(6 * time.Minute)
		impatient := errors.New("impatient")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, impatient)
		defer cancel()
		if _, err := client.Settle(ctx); !errors.Is(err, impatient) {
			t.Errorf("Settle while the code runs = %v, want the cause of its context", err)
		}
		close(let)
		if _, err := client.Settle(t.Context()); err != nil {
			t.Errorf("Settle after it returned: %v", err)
		}
		must(t, w.StopLeasing(t.Context()))
	})
}

func TestSettleForgetsAWorkerThatWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(&worker{}, setup{ledger: memory.New(memory.Options{})})
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for range 50 {
			w := start(t, setup{client: client})
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { _ = w.StopLeasing(over) })
			}
			wg.Wait()
			<-w.Done()
			if next, err := client.Settle(over); !next.IsZero() || err != nil {
				t.Fatalf("Settle = %v, %v; want zero, nil", next, err)
			}
		}
	})
}
