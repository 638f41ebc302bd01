package procs

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// waits are samples of how long a thread of this process had waited for a processor,
// oldest first.
var waits struct {
	sync.Mutex
	samples []sample
}

type sample struct {
	at      time.Time
	waited  time.Duration
	stalled time.Duration // in which some thread of the machine waited for a disk, and in which one waited for a processor
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
		disk, _ := os.Open("/proc/pressure/io")
		processor, _ := os.Open("/proc/pressure/cpu")
		for b := make([]byte, 100); ; time.Sleep(10 * time.Millisecond) {
			var ran, waited int64
			n, _ := stat.ReadAt(b, 0)
			_, _ = fmt.Sscan(string(b[:n]), &ran, &waited)
			waits.Lock()
			waits.samples = append(waits.samples, sample{time.Now(), time.Duration(waited), stalled(disk) + stalled(processor)})
			waits.Unlock()
		}
	}()
}

// stalled reads for how long some thread of the machine has waited so far: for a disk, as for a page of its program, or for
// a processor. See the kernel's documentation of pressure stall information. It is 0 if the kernel doesn't report it.
func stalled(pressure *os.File) time.Duration {
	b := make([]byte, 100)
	n, _ := pressure.ReadAt(b, 0)
	_, total, _ := strings.Cut(string(b[:n]), "total=")
	var us int64
	_, _ = fmt.Sscan(total, &us)
	return time.Duration(us) * time.Microsecond
}

// between returns the newest sample, and the newest one taken before a time.
func between(since time.Time) (from, to sample) {
	waits.Lock()
	defer waits.Unlock()
	for i := len(waits.samples) - 1; i >= 0; i-- {
		from = waits.samples[i]
		if from.at.Before(since) {
			break
		}
	}
	if n := len(waits.samples); n > 0 {
		to = waits.samples[n-1]
	}
	return from, to
}

// Delayed is how long that thread waited for a processor since a time.
func Delayed(since time.Time) (waited time.Duration) {
	from, to := between(since)
	return to.waited - from.waited
}

// Busy reports whether the machine had so much else to do since a time that bounds of
// real time, which a program keeps otherwise, may have been missed.
func Busy(since time.Time) bool {
	from, to := between(since)
	return max(to.waited-from.waited, to.stalled-from.stalled) > time.Since(since)/50
}

// TooLate ends a test of something that was late: without a verdict if the machine was [Busy] since a time, else as failed.
func TooLate(t *testing.T, since time.Time, what string) {
	t.Helper()
	if Busy(since) {
		t.Skip("not judged, the machine was busy: " + what)
	}
	t.Fatal(what)
}

// Within fails the test if something that has just ended was [Late].
func Within(t *testing.T, what string, took, limit time.Duration) {
	t.Helper()
	if Late(t, what, took, limit) {
		t.Errorf("%s took %v, want at most %v, and what a thread waited for a processor", what, took, limit)
	}
}

// Late reports that something that has just ended took longer than the limit. Where a thread had to wait for a processor
// meanwhile, the limit is that much later. In the quick run nothing is late: it judges what a busy machine only delays.
func Late(t *testing.T, what string, took, limit time.Duration) bool {
	t.Helper()
	delayed := Delayed(time.Now().Add(-took))
	t.Logf("%s: %v, with %v of waiting for a processor", what, took.Round(10*time.Microsecond), delayed.Round(time.Millisecond))
	return !suites.Quick() && took > limit+delayed
}
