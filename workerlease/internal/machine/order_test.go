package machine_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
)

// starting is a worker that starts a minute after a boundary. Its slots are 5 min long,
// and claims for each open 10 s before.
func starting(with func(*machine.Config)) *world {
	c := plain()
	with(&c)
	w := newWorld(c)
	w.local = time.Minute
	return w
}

// story is when a worker did what.
type story struct {
	reads, allocated, again []time.Duration // when its code was called again, too; rounded to 10 ms
	missed                  []time.Duration // starts of slots
}

// tell lets a worker go on until a time, with code that returns as soon as its lease has
// ended, on a store that refuses to append before another time.
func (w *world) tell(t *testing.T, until, broken time.Duration) (s story) {
	t.Helper()
	must(t, w.event(machine.Wake{}))
	for {
		now := w.local.Round(10 * time.Millisecond)
		for _, a := range w.log {
			switch a := a.(type) {
			case machine.ReadHead:
				s.reads = append(s.reads, now)
			case machine.Allocate:
				s.allocated = append(s.allocated, now)
			case machine.CallAgain:
				s.again = append(s.again, now)
			case machine.Tell:
				if a.Note.What == machine.Missed {
					s.missed = append(s.missed, a.Note.Slot.Start.Sub(eve))
				}
			default:
			}
		}
		w.log = nil
		if w.local >= until {
			return s
		}
		if _, appends := w.op.(machine.Append); appends && w.local < broken {
			w.op = nil
			must(t, w.event(machine.Appended{Err: errTimeout, Took: 2 * time.Millisecond}))
		} else {
			must(t, w.goOn())
		}
	}
}

// The worker is alone, so it has each slot but the one in which it starts.
func TestAWorkerReadsTheHeadAtItsPlaceOnTheLadder(t *testing.T) {
	const draw = 0x9abcdef012345678
	turns := priority.Turns{Lead: 10 * time.Second, Step: time.Second}
	for _, tie := range []priority.TieBreak{priority.Sticky, priority.Rotate, priority.Random} {
		for _, p := range []int{0, 3, 7} {
			t.Run(fmt.Sprint(tie, " ", p), func(t *testing.T) {
				w := starting(func(c *machine.Config) { c.Priority, c.TieBreak = p, tie })
				binary.LittleEndian.PutUint64(w.draw[:], draw)
				var want []time.Duration
				for n := range 3 {
					opens := time.Duration(n+1)*5*time.Minute - 10*time.Second
					turn := turns.Offset(p, tie, n > 0, draw)
					if n > 0 {
						turn -= 2 * time.Millisecond // An append takes that long.
					}
					want = append(want, (opens + turn).Round(10*time.Millisecond))
				}
				if got := w.tell(t, 16*time.Minute, 0).reads; !slices.Equal(got, want) {
					t.Errorf("the head is read at %v, want at %v", got, want)
				}
			})
		}
	}
}

func TestEntryIsAtTheNextBoundaryUnlessMoreIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		join  bool
		group string
		want  machine.Entry
	}{
		{false, "", machine.FromNext},
		{false, "g", machine.AsMember},
		{true, "", machine.AtOnce},
		{true, "g", machine.AtOnce},
	} {
		if got := machine.Standard.Entry(c.join, c.group); got != c.want {
			t.Errorf("Entry(%v, %q) = %v, want %v", c.join, c.group, got, c.want)
		}
	}
}

// Whatever else is true of the worker, its entry alone says what it does in the slot in
// which it starts.
func TestAWorkerEntersAsItsEntrySays(t *testing.T) {
	for _, c := range []struct {
		name        string
		entry       machine.Entry
		held        bool          // by its group
		read, first time.Duration // when the head is read first, and the first lease begins
	}{
		{"from the next, free", machine.FromNext, false, 290 * time.Second, 300 * time.Second},
		{"from the next, held", machine.FromNext, true, 290 * time.Second, 300 * time.Second},
		{"as a member, free", machine.AsMember, false, time.Minute, 300 * time.Second},
		{"as a member, held", machine.AsMember, true, time.Minute, time.Minute},
		{"at once, free", machine.AtOnce, false, time.Minute, time.Minute},
		{"at once, held", machine.AtOnce, true, time.Minute, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := starting(func(o *machine.Config) {
				o.Group = "g"
				o.Rules.Entry = func(bool, string) machine.Entry { return c.entry }
			})
			if c.held {
				w.ledger[1] = store.Record{
					WorkerType: "mail", Seq: 1, Kind: store.KindGrant, InstanceID: "w2", Claim: "theirs", Group: "g",
					SlotStart: eve, SlotEnd: eve.Add(5 * time.Minute), WindowStart: eve, WindowEnd: eve.Add(5 * time.Minute),
					Token: eve.UnixMilli(), Schedule: w.m.Schedule.String(),
				}
			}
			s := w.tell(t, 6*time.Minute, 0)
			if len(s.reads) == 0 || s.reads[0].Round(time.Second) != c.read {
				t.Errorf("the head is read at %v, want first at %v", s.reads, c.read)
			}
			if len(s.allocated) == 0 || s.allocated[0].Round(time.Second) != c.first {
				t.Errorf("leases begin at %v, want first at %v", s.allocated, c.first)
			}
			if len(s.missed) > 0 {
				t.Errorf("the slots at %v are missed, want none: nobody contended for what was before", s.missed)
			}
		})
	}
}

// Nothing can be appended before, at, and behind a boundary.
func TestAnUndecidedSlotIsContendedForUntilItIsAbandoned(t *testing.T) {
	sooner := func(slot slots.Slot, _ time.Time) time.Time { return slot.Start.Add(time.Minute) }
	const slot = 5 * time.Minute // the first that the worker contends for
	for _, c := range []struct {
		name    string
		abandon func(slots.Slot, time.Time) time.Time
		broken  time.Duration
		missed  bool
	}{
		{"the store is back before the boundary", machine.Standard.Abandon, slot - time.Second, false},
		{"the store is back behind the boundary", machine.Standard.Abandon, slot + 2*time.Minute, false},
		{"the store is back when claims are about to open", machine.Standard.Abandon, 2*slot - 30*time.Second, false},
		{"the store is back when claims are open", machine.Standard.Abandon, 2*slot - 9*time.Second, true},
		{"given up sooner, and the store is back before", sooner, slot + 30*time.Second, false},
		{"given up sooner, and the store is back behind that", sooner, slot + 2*time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := starting(func(o *machine.Config) { o.Rules.Abandon = c.abandon })
			s := w.tell(t, 3*slot-time.Minute, c.broken)
			want, missed := max(slot, c.broken), []time.Duration(nil)
			if c.missed {
				want, missed = 2*slot, []time.Duration{slot}
			}
			if !slices.Equal(s.missed, missed) {
				t.Errorf("the slots at %v are missed, want %v", s.missed, missed)
			}
			// (While the store fails, it looks and sends in turn, 5 s apart at most.)
			if len(s.allocated) == 0 || s.allocated[0] < want || s.allocated[0] > want+10*time.Second {
				t.Errorf("leases begin at %v, want first at %v", s.allocated, want)
			}
		})
	}
}

// resting is a worker that has held the lease since a minute, and will go on with it.
func resting(t *testing.T) *world {
	t.Helper()
	w := newWorld(plain())
	w.m.Continuous = true
	if calls := w.tell(t, 6*time.Minute, 0).again; len(calls) > 0 || !w.live {
		t.Fatalf("before its code has rested: called again at %v, live %v", calls, w.live)
	}
	return w
}

func TestCodeThatRestsIsCalledAgainOnceWhenTheNextSlotBegins(t *testing.T) {
	w := resting(t)
	slot := w.local.Truncate(5 * time.Minute)
	must(t, w.event(machine.Rested{}))
	calls := w.tell(t, slot+12*time.Minute, 0).again
	if len(calls) != 1 || calls[0] < slot+5*time.Minute || calls[0] > slot+5*time.Minute+10*time.Millisecond {
		t.Errorf("called again at %v, want once, at %v", calls, slot+5*time.Minute)
	}
}

// The code returned at the very end of its lease, and the next one begins anew: it is
// called for that, and not again as well.
func TestCodeThatRestsWhenItsLeaseHasEndedIsNotCalledAgain(t *testing.T) {
	w := resting(t)
	w.local = w.local.Truncate(5*time.Minute) + 5*time.Minute // Nothing was extended meanwhile.
	must(t, w.event(machine.Wake{}))
	if w.live {
		t.Fatal("the lease is held after its end")
	}
	must(t, w.event(machine.Rested{}))
	if calls := w.tell(t, w.local+20*time.Minute, 0).again; len(calls) > 0 || !w.live {
		t.Errorf("called again at %v, want never; live %v, want a new lease", calls, w.live)
	}
}
