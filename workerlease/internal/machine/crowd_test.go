package machine_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// crowd is some workers on one ledger. Each has its own error about the time,
// within its interval.
type crowd struct {
	t       *rapid.T
	local   time.Duration
	peers   []*world
	mail    []machine.Event // replies on their way, by peer
	ledger  map[int64]store.Record
	token   int64 // the newest that was allocated, and its claim
	claim   string
	began   int
	strange bool
}

// The theorem: whatever the delays, pauses, lost replies, clock errors, mixed
// intervals and foreign records, no two terms are worked under at one time,
// and tokens grow from term to term.
func TestPropertyAtMostOneTermIsWorkedUnder(t *testing.T) {
	began := 0
	rapid.Check(t, func(t *rapid.T) { began += live(t) })
	t.Logf("%d allocated", began)
	if began == 0 {
		t.Error("nothing was ever allocated")
	}
}

func live(t *rapid.T) int {
	c := &crowd{t: t, ledger: map[int64]store.Record{}, strange: rapid.Bool().Draw(t, "strange")}
	n := rapid.IntRange(2, 4).Draw(t, "peers")
	same := drawnConfig(t)
	for range n {
		config := drawnConfig(t)
		config.Priority = min(config.Priority, 2)
		if !c.strange {
			config.Schedule, config.Margin = same.Schedule, same.Margin
		}
		w := newWorld(config)
		w.spread = rapid.SampledFrom([]time.Duration{1, time.Millisecond, 50 * time.Millisecond, 2 * time.Second}).Draw(t, "spread")
		w.clocks[0] = eve.Add(time.Duration(rapid.Int64Range(-int64(w.spread), int64(w.spread)).Draw(t, "error")))
		w.ledger = c.ledger
		c.peers, c.mail = append(c.peers, w), append(c.mail, nil)
		c.happen(len(c.peers)-1, machine.Wake{})
	}
	for range rapid.IntRange(20, 400).Draw(t, "steps") {
		c.proceed()
	}
	return c.began
}

// happen gives a peer an event and looks who works.
func (c *crowd) happen(i int, e machine.Event) {
	c.t.Helper()
	w := c.peers[i]
	w.draw[0], w.draw[7] = byte(i), byte(w.draws*37) // claims are unique among peers
	if err := w.event(e); err != nil {
		c.t.Fatalf("peer %d: %#v: %v", i, e, err)
	}
	for _, a := range w.log {
		if a, ok := a.(machine.Allocate); ok {
			c.began++
			if t := a.Term; t.Claim != c.claim && t.Token <= c.token {
				c.t.Fatalf("peer %d: token %d after %d", i, t.Token, c.token)
			}
			c.token, c.claim = a.Term.Token, a.Term.Claim
		}
	}
	w.log = nil
	c.look()
}

// look fails the test if two terms may be worked under now.
func (c *crowd) look() {
	c.t.Helper()
	var at machine.Term
	for i, w := range c.peers {
		h := w.s.Hold.Held
		if !w.live || !machine.Standard.Inside(w.now(0), h.Start, h.End, w.m.Margin) {
			continue
		}
		if at.Claim != "" && at.Claim != h.Claim {
			c.t.Fatalf("at %v peer %d works under %v, another under %v", eve.Add(c.local), i, h, at)
		}
		at = h
	}
}

func (c *crowd) pass(d time.Duration) {
	c.local += d
	for _, w := range c.peers {
		w.local = c.local
	}
	c.look()
}

// proceed lets one thing happen.
func (c *crowd) proceed() {
	i := rapid.IntRange(0, len(c.peers)-1).Draw(c.t, "peer")
	w := c.peers[i]
	switch what := rapid.IntRange(0, 39).Draw(c.t, "what"); {
	case what < 20: // this peer goes on
		switch {
		case c.mail[i] != nil:
			e := c.mail[i]
			c.mail[i] = nil
			c.happen(i, e)
		case w.op != nil:
			c.happen(i, w.reply(nil, false, 0))
		case w.running && !w.live:
			c.happen(i, machine.Returned{})
		default:
			c.sleep(i)
		}
	case what < 26 && w.op != nil && c.mail[i] == nil: // done now, told later
		switch what {
		case 20, 21, 22:
			c.mail[i] = w.reply(nil, false, 0)
		case 23:
			c.mail[i] = w.reply(errTimeout, true, 0)
		case 24:
			c.mail[i] = w.reply(store.ErrConflict, true, 0)
		case 25:
			c.mail[i] = w.reply(errTimeout, false, 0)
		}
	case what < 28 && len(w.adrift) > 0: // lands late
		_ = w.insert(w.adrift[0])
		w.adrift = w.adrift[1:]
	case what < 31: // a pause of all, or of all but one
		c.pass(span(30*time.Hour).Draw(c.t, "pause"))
		c.happen(i, machine.Wake{})
	case what == 31 && w.live:
		c.happen(i, machine.Panicked{})
	case what == 32 && !w.s.Stopping:
		c.happen(i, machine.Stop{})
	case what == 33 && w.halted: // restarted: another worker with the same settings
		again := newWorld(w.m.Config)
		again.spread, again.clocks, again.ledger = w.spread, w.clocks, c.ledger
		again.local, again.draws, again.adrift = w.local, w.draws, w.adrift
		c.peers[i], c.mail[i] = again, nil
		c.happen(i, machine.Wake{})
	case what == 34 && c.strange && len(c.ledger) > 0:
		c.foreign()
	case what == 35:
		c.happen(i, machine.Hinted{})
	default:
		c.sleep(i)
	}
}

// sleep lets time pass until the peer's next wait, or until anybody's.
func (c *crowd) sleep(i int) {
	least := time.Hour
	for j, w := range c.peers {
		if j != i && rapid.Bool().Draw(c.t, "paused") {
			continue
		}
		now := w.now(0)
		for _, v := range w.m.Waits(&w.s) {
			if v.Time.IsZero() {
				least = min(least, v.Local-c.local)
			} else {
				least = min(least, now.Until(v.Time, v.Edge))
			}
		}
	}
	c.pass(max(least, time.Millisecond))
	c.happen(i, machine.Wake{})
}

// foreign puts a record of another version, or a broken one, into the ledger.
func (c *crowd) foreign() {
	w := c.peers[0]
	head := c.ledger[w.top()]
	r := head
	r.Seq++
	if head.Check() != nil || rapid.Bool().Draw(c.t, "broken") {
		r = store.Record{WorkerType: "mail", Seq: r.Seq, Defect: "broken"}
	} else {
		r.Kind = "done"
		r.WindowStart = r.WindowEnd
		r.ReadAt = time.Time{}
	}
	if err := w.insert(r); err != nil && !errors.Is(err, store.ErrConflict) {
		c.t.Fatal(err)
	}
}

// Millions of slots may pass between two looks.
func TestASuspendOverAMillionSlotsIsOverAtOnce(t *testing.T) {
	c := plain()
	c.Schedule, c.Margin = slots.Must(slots.Every(100*time.Millisecond)), 10*time.Millisecond
	w := newWorld(c)
	steps := func(n int) {
		t.Helper()
		for range n {
			must(t, w.goOn())
		}
	}
	steps(50)
	for _, d := range []time.Duration{24 * time.Hour, 100 * 24 * time.Hour} {
		began := w.notes[machine.Allocated]
		w.local += d
		w.log = nil
		must(t, w.event(machine.Wake{}))
		if len(w.log) > 10 {
			t.Errorf("after %v: %d actions, want a few", d, len(w.log))
		}
		steps(20)
		if w.notes[machine.Allocated] == began {
			t.Errorf("after %v: nothing was allocated any more", d)
		}
	}
}
