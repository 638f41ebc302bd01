package mongo

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// The driver's Disconnect takes no notice of its context while it waits for its heartbeats, and one
// that begins at that moment lasts for 10 s.
func TestCloseEndsWithItsContextWhileAHeartbeatGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serveReplicaSet(t, inBubble)
		for _, m := range s.members {
			m.slow.Store(int64(2 * time.Millisecond))
		}
		for range 400 {
			client, _ := s.connect(t)
			l := open(t, Options{Client: client})
			l.own = true
			// Whole milliseconds, as all that goes on here: so heartbeats begin at the moment of Close.
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			if rand.IntN(2) == 0 {
				must(t, "Ping()", client.Ping(within(t, patience), nil))
			}
			began := time.Now()
			wantErr(t, "Close()", l.Close(within(t, time.Second)), nil)
			if took := time.Since(began); took > 1100*time.Millisecond {
				t.Fatalf("Close() took %v, want it to end with its context, after 1 s", took)
			}
		}
		time.Sleep(time.Minute) // The heartbeats end.
	})
}
