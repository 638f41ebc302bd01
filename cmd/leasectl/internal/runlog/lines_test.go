package runlog

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/workerlease/event"
)

// clogged takes what is written once it flows.
type clogged struct {
	flows chan struct{}
	strings.Builder
}

func (c *clogged) Write(b []byte) (int, error) {
	<-c.flows
	return c.Builder.Write(b)
}

// As of a terminal after Ctrl-S: leasing goes on, and the log says later how much of it is missing.
func TestALogThatNobodyReadsHoldsNobodyUp(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			to := &clogged{flows: make(chan struct{})}
			j := New(Options{To: to, JSON: asJSON, Level: zapcore.ErrorLevel, Worker: worker})
			began := time.Now()
			const size, more = 1000, 200
			for i := range maxQueued/size + more {
				j.Observe(event.Panic{Worker: worker, Err: fmt.Errorf("%04d%s", i, strings.Repeat("x", size))})
			}
			if took := time.Since(began); took > orderTime {
				t.Errorf("logging took %v, want %v for the first line at most", took, orderTime)
			}
			close(to.flows)
			synctest.Wait()
			j.Observe(event.Panic{Worker: worker, Err: fmt.Errorf("last")})
			synctest.Wait()
			all := strings.SplitAfter(strings.TrimSpace(to.String()), "\n")
			for i, line := range all[:len(all)-2] {
				if !strings.Contains(line, fmt.Sprintf("%04dx", i)) {
					t.Fatalf("line %d is %.80q, want all lines in order up to the gap", i, line)
				}
			}
			missing, want := maxQueued/size+more-(len(all)-2), "%d lines of the log are missing here: nobody read it for a while"
			if asJSON {
				want = `"message":"log lines lost","lines":%d,"workerType":"t"`
			}
			if got := all[len(all)-2]; missing < more || !strings.Contains(got, fmt.Sprintf(want, missing)) {
				t.Errorf("the line after the gap is %q, want that %d are missing", got, missing)
			}
			if got := all[len(all)-1]; !strings.Contains(got, "last") {
				t.Errorf("the newest line is %q", got)
			}
		})
	}
}

func TestTheEndOfALogThatNobodyReadsComesWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &clogged{flows: make(chan struct{})}
		j := New(Options{To: to, Worker: worker})
		j.Stopped()
		began := time.Now()
		j.Close()
		if took := time.Since(began); took != flushTime {
			t.Errorf("Close() took %v, want %v", took, flushTime)
		}
		close(to.flows)
	})
}
