package procs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// waits are the samples of how long this process had waited for a processor, oldest first.
var waits struct {
	sync.Mutex
	samples []sample
}

type sample struct {
	at     time.Time
	waited time.Duration // all threads together
}

// Feel begins to measure how long this process waits for a processor, as long as it
// lives: other processes have to wait, too. TestMain calls it.
func Feel() {
	go func() {
		for ; ; time.Sleep(20 * time.Millisecond) {
			look()
		}
	}()
}

// look takes a sample.
func look() sample {
	now := sample{at: time.Now()}
	threads, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, name := range threads {
		var ran, waited time.Duration
		if b, err := os.ReadFile(name); err == nil {
			_, _ = fmt.Sscan(string(b), (*int64)(&ran), (*int64)(&waited))
		}
		now.waited += waited
	}
	waits.Lock()
	defer waits.Unlock()
	waits.samples = append(waits.samples, now)
	return now
}

// Delayed is how long this process waited for a processor since a time, on the average of
// those that it may use.
func Delayed(since time.Time) time.Duration {
	now := look()
	before := now
	waits.Lock()
	defer waits.Unlock()
	for i := len(waits.samples) - 1; i >= 0 && before.at.After(since); i-- {
		before = waits.samples[i]
	}
	return max(0, now.waited-before.waited) / time.Duration(runtime.GOMAXPROCS(0))
}

// Busy reports whether the machine had so much else to do since a time that bounds of
// real time, which a program keeps otherwise, may have been missed.
func Busy(since time.Time) bool { return Delayed(since) > time.Since(since)/10 }

// Within fails the test if something that has just ended took longer than the limit. Where
// this process had to wait for a processor meanwhile, the limit is that much later.
func Within(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	delayed := Delayed(time.Now().Add(-took))
	t.Logf("%s: %v, with %v of waiting for a processor", what, took.Round(10*time.Microsecond), delayed.Round(time.Millisecond))
	if took > limit+delayed {
		t.Errorf("%s took %v, want at most %v, and %v for waiting for a processor", what, took, limit, delayed)
	}
}
