package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// A worker with slots of a day claims one, and is cut off while its append is under way.
// Others, with slots of ten seconds, make the ledger a hundred records longer meanwhile.
func TestAWorkerThatComesBackDoesNotFollowTheLedgerRecordByRecord(t *testing.T) {
	for _, c := range []struct {
		name  string
		stale int // how many of the newest records a read of the head lacks
	}{
		{"reads show the head", 0},
		{"reads of the head are stale", 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(plain())
			w.m.Schedule = slots.Must(slots.Every(24 * time.Hour))
			w.local = 24*time.Hour - time.Minute
			must(t, w.event(machine.Wake{}))
			for _, appends := w.op.(machine.Append); !appends; _, appends = w.op.(machine.Append) {
				must(t, w.goOn())
			}
			boundary := eve.Add(24 * time.Hour)
			for seq := range int64(100) {
				start := boundary.Add(time.Duration(seq) * 10 * time.Second)
				must(t, w.insert(store.Record{
					WorkerType: "mail", Seq: seq + 1, Kind: store.KindGrant, InstanceID: "w2", Claim: fmt.Sprint("theirs", seq), Schedule: "every 10s",
					SlotStart: start, SlotEnd: start.Add(10 * time.Second), WindowStart: start, WindowEnd: start.Add(10 * time.Second), Token: start.UnixMilli(),
				}))
			}
			w.local += 1000 * time.Second
			must(t, w.event(w.reply(errTimeout, false, 0)))

			back, reads := w.local, 0
			for w.local < back+time.Minute && w.s.Hold.Held.IsZero() {
				stale := 0
				switch w.op.(type) {
				case machine.ReadHead:
					reads, stale = reads+1, c.stale
				case machine.ReadRecord:
					reads++
				}
				if w.op == nil {
					must(t, w.goOn())
					continue
				}
				w.local += 10 * time.Millisecond
				must(t, w.event(w.reply(nil, false, stale)))
			}
			took := w.local - back
			t.Logf("%d reads in %v", reads, took)
			if c.stale == 0 && (w.s.Hold.Held.IsZero() || reads > 4) {
				t.Errorf("%d reads, and it holds %v; want the rest of the slot after 4 reads at most", reads, w.s.Hold.Held)
			}
			if most := 2 * int(took/time.Second); reads > most {
				t.Errorf("%d reads in %v, want at most %d", reads, took, most)
			}
		})
	}
}
