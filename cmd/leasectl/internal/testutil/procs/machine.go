package procs

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// waits are samples of how long a thread of this process had waited for a processor,
// oldest first.
var waits struct {
	sync.Mutex
	samples []sample
}

type sample struct {
	at     time.Time
	waited time.Duration
}

// Feel begins to measure how busy the machine is, as long as this process lives, by how
// long a thread waits for a processor that wants one now and then, as leasectl's do.
// TestMain calls it.
func Feel() {
	go func() {
		runtime.LockOSThread()
		stat, err := os.Open("/proc/thread-self/schedstat")
		if err != nil {
			return // a kernel without it: no bound is ever later
		}
		for b := make([]byte, 100); ; time.Sleep(10 * time.Millisecond) {
			var ran, waited int64
			n, _ := stat.ReadAt(b, 0)
			_, _ = fmt.Sscan(string(b[:n]), &ran, &waited)
			waits.Lock()
			waits.samples = append(waits.samples, sample{time.Now(), time.Duration(waited)})
			waits.Unlock()
		}
	}()
}

// Delayed is how long that thread waited for a processor since a time.
func Delayed(since time.Time) (waited time.Duration) {
	waits.Lock()
	defer waits.Unlock()
	for i := len(waits.samples) - 1; i >= 0; i-- {
		waited = waits.samples[len(waits.samples)-1].waited - waits.samples[i].waited
		if waits.samples[i].at.Before(since) {
			break
		}
	}
	return waited
}

// Busy reports whether the machine had so much else to do since a time that bounds of
// real time, which a program keeps otherwise, may have been missed.
func Busy(since time.Time) bool { return Delayed(since) > time.Since(since)/50 }

// Again tries what a machine that is Busy may make late, until it isn't: three times at
// most, because a program that is late each time is wrong. It returns whether the last one
// was late.
func Again(t *testing.T, try func() (late bool)) bool {
	t.Helper()
	for n := 1; ; n++ {
		begun := time.Now()
		if !try() {
			return false
		}
		if n == 3 || !Busy(begun) {
			return true
		}
		t.Log("it was late: the machine may have been busy")
	}
}

// Within fails the test if something that has just ended took longer than the limit. Where
// a thread had to wait for a processor meanwhile, the limit is that much later.
func Within(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	delayed := Delayed(time.Now().Add(-took))
	t.Logf("%s: %v, with %v of waiting for a processor", what, took.Round(10*time.Microsecond), delayed.Round(time.Millisecond))
	if took > limit+delayed {
		t.Errorf("%s took %v, want at most %v, and %v for waiting for a processor", what, took, limit, delayed)
	}
}
