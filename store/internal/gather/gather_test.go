package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// server answers a number by its double, a second after it was asked.
type server struct {
	mu      sync.Mutex
	batches [][]int
	ends    []error // of the contexts of batches that ended early
	ctx     context.Context
}

func (s *server) do(ctx context.Context, batch []int) []int {
	s.mu.Lock()
	s.batches = append(s.batches, slices.Clone(batch))
	s.ctx = ctx
	s.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		s.mu.Lock()
		s.ends = append(s.ends, context.Cause(ctx))
		s.mu.Unlock()
	}
	doubles := make([]int, len(batch))
	for i, n := range batch {
		doubles[i] = 2 * n
	}
	return doubles
}

// result is what Call returns.
type result struct {
	answer         int
	made, answered bool
	took           time.Duration
}

// ask calls in the background, and returns when the call is under way or waits.
func ask(ctx context.Context, c *Calls[int, int], n int) <-chan result {
	done := make(chan result, 1)
	began := time.Now()
	go func() {
		answer, made, answered := c.Call(ctx, n)
		done <- result{answer, made, answered, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

// seen are the batches so far.
func (s *server) seen() [][]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: %s, want %s", what, g, w)
	}
}

func TestCallsThatWaitForALaneShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		c := New(2, 3, s.do)
		var all []<-chan result
		for n := range 9 {
			all = append(all, ask(t.Context(), c, n))
		}
		equal(t, "batches while both lanes are taken", s.seen(), [][]int{{0}, {1}})
		// The first two by themselves, then three each on both lanes, then the last.
		for n, seconds := range []int{1, 1, 2, 2, 2, 2, 2, 2, 3} {
			equal(t, fmt.Sprint("call ", n), <-all[n], result{2 * n, true, true, time.Duration(seconds) * time.Second})
		}
		equal(t, "batches", len(s.seen()), 5)
		synctest.Wait()
		equal(t, "lanes that are taken at the end", c.underWay, 0)
		equal(t, "a later call", <-ask(t.Context(), c, 7), result{14, true, true, time.Second})
	})
}

func TestACallThatGivesUpWhileItWaitsIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		c := New(1, 10, s.do)
		first := ask(t.Context(), c, 1)
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		second, third := ask(short, c, 2), ask(t.Context(), c, 3)
		equal(t, "the one that gives up", <-second, result{0, false, false, 300 * time.Millisecond})
		equal(t, "the first", <-first, result{2, true, true, time.Second})
		equal(t, "the other one that waits", <-third, result{6, true, true, 2 * time.Second})
		equal(t, "batches", s.seen(), [][]int{{1}, {3}})
	})
}

func TestACallThatGivesUpDisturbsNoOtherOfItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		c := New(1, 10, s.do)
		_ = ask(t.Context(), c, 1)
		short, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		second, third := ask(short, c, 2), ask(t.Context(), c, 3)
		equal(t, "the one that gives up", <-second, result{0, true, false, 1500 * time.Millisecond})
		equal(t, "the other", <-third, result{6, true, true, 2 * time.Second})
		equal(t, "batches", s.seen(), [][]int{{1}, {2, 3}})
		synctest.Wait()
		equal(t, "contexts that ended", s.ends, []error{})
	})
}

func TestABatchThatAllHaveLeftEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		c := New(1, 10, s.do)
		_ = ask(t.Context(), c, 1)
		why := errors.New("the last one gives up")
		early, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		late, cancelLate := context.WithTimeoutCause(t.Context(), 1400*time.Millisecond, why)
		defer cancelLate()
		second, third := ask(early, c, 2), ask(late, c, 3)
		<-second
		equal(t, "the last one", <-third, result{0, true, false, 1400 * time.Millisecond})
		synctest.Wait()
		equal(t, "contexts that ended", s.ends, []error{why})
		equal(t, "lanes that are taken", c.underWay, 0)
	})
}

type key struct{}

func TestABatchHasTheLatestDeadlineAndTheValuesOfItsFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		c := New(1, 10, s.do)
		now := time.Now()
		of := func(name string, d time.Duration) context.Context {
			ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, name), d)
			t.Cleanup(cancel)
			return ctx
		}
		for _, tc := range []struct {
			last context.Context
			want time.Time
			ok   bool
		}{
			{of("last", 30*time.Second), now.Add(time.Minute), true},
			{of("last", time.Hour), now.Add(time.Hour), true},
			{context.WithValue(t.Context(), key{}, "without"), time.Time{}, false},
		} {
			_ = ask(t.Context(), c, 1)
			one, two := ask(of("first", time.Minute), c, 2), ask(tc.last, c, 3)
			<-one
			<-two
			synctest.Wait()
			d, ok := s.ctx.Deadline()
			equal(t, "deadline", []any{d.Equal(tc.want), ok}, []any{true, tc.ok})
			equal(t, "value", s.ctx.Value(key{}), "first")
		}
	})
}

// A hundred goroutines call, give up and call again; nothing is lost, mixed up or left over.
func TestEachCallGetsItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made int
		var mu sync.Mutex
		c := New(3, 7, func(ctx context.Context, batch []int) []int {
			mu.Lock()
			made += len(batch)
			mu.Unlock()
			time.Sleep(time.Duration(len(batch)) * time.Millisecond)
			doubles := make([]int, len(batch))
			for i, n := range batch {
				doubles[i] = 2 * n
			}
			return doubles
		})
		var all sync.WaitGroup
		var sent int
		for g := range 100 {
			all.Go(func() {
				for i := range 50 {
					n := 1 + 50*g + i
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n%40)*time.Millisecond)
					answer, passedOn, answered := c.Call(ctx, n)
					cancel()
					if want := 2 * n; answered && answer != want || !answered && answer != 0 || answered && !passedOn {
						t.Errorf("Call(%d) = %d, %v, %v", n, answer, passedOn, answered)
					}
					if passedOn {
						mu.Lock()
						sent++
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		synctest.Wait()
		equal(t, "calls that were passed on", made, sent)
		equal(t, "lanes and calls that are left", []int{c.underWay, len(c.waiting)}, []int{0, 0})
	})
}
