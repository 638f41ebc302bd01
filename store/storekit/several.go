package storekit

import (
	"sync"
	"sync/atomic"
)

// AtATime is how many requests of one operation Several runs at a time, and atATime how many a page does.
const (
	AtATime = 8
	atATime = 32
)

// Several does something for each of n, up to AtATime of them at a time, in order. After the first error it starts no
// more, but waits for those in progress, which may succeed.
func Several(n int, do func(i int) error) error { return several(n, AtATime, do) }

// several is Several with another number at a time.
func several(n, atATime int, do func(i int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	failures := make(chan error, atATime)
	for range min(atATime, n) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := do(int(i)); err != nil {
					next.Store(int64(n))
					failures <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failures:
		return err
	default:
		return nil
	}
}

// OldestFirst is Several for deletions that begin with the oldest. The first must succeed before the others begin, and
// each AtATime of them before the next. So what can't be deleted has fewer than AtATime gaps above it, and they don't grow
// with each try.
func OldestFirst(n int, do func(i int) error) error {
	size := 1
	for i := 0; i < n; i += size {
		if i > 0 {
			size = min(AtATime, n-i)
		}
		if err := Several(size, func(j int) error { return do(i + j) }); err != nil {
			return err
		}
	}
	return nil
}
