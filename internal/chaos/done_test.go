//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// slotStart is where the slot n starts, in Unix ms; the boot clock is store time.
func slotStart(n int64) int64 { return n * doneSlot.Milliseconds() }

// tell is a line about an attempt at a slot.
func tell(event string, slot, attempt int64) line {
	l := line{
		event: event, boot: time.Duration(slotStart(slot)+100*attempt) * ms, pid: int(10*slot + attempt), token: 10*slot + attempt,
		start: slotStart(slot), end: slotStart(slot + 1), instance: "job-0-0", workerType: "job-0", role: asCommand,
	}
	if event == marked {
		l.role = asHarness
	}
	return l
}

// granted is attempt n at a slot.
func granted(seq, slot, n int64) store.Record {
	from := store.FromMillis(slotStart(slot) + 1000*(n-1))
	return store.Record{
		WorkerType: "job-0", Seq: seq, Kind: store.KindGrant, InstanceID: "job-0-0", Claim: fmt.Sprint(slot, "/", n), Token: 10*slot + n,
		SlotStart: store.FromMillis(slotStart(slot)), SlotEnd: store.FromMillis(slotStart(slot + 1)), WindowStart: from, WindowEnd: from.Add(time.Second),
		Attempt: int(n),
	}
}

// doneRecord tells that a slot is done, behind a head.
func doneRecord(head store.Record, slot int64) store.Record {
	r := head
	r.Seq, r.Kind, r.WindowStart, r.DoneUntil = head.Seq+1, store.KindDone, head.WindowEnd, store.FromMillis(slotStart(slot+1))
	return r
}

func doneBefore(r store.Record, slot int64) store.Record {
	r.DoneUntil = store.FromMillis(slotStart(slot + 1))
	return r
}

// slotsFrom are the slots from one to another.
func slotsFrom(first, last int64) []slot {
	return slotsOf(jobType(0), time.Duration(slotStart(first))*ms, time.Duration(slotStart(last+1))*ms, store.FromMillis(0))
}

func TestSlotsAreDoneOnce(t *testing.T) {
	twoSlots := []store.Record{granted(1, 1, 1), doneRecord(granted(1, 1, 1), 1), doneBefore(granted(3, 2, 1), 1), doneRecord(granted(3, 2, 1), 2)}
	bothDone := []line{tell(began, 1, 1), tell(ended, 1, 1), tell(marked, 1, 1), tell(began, 2, 1), tell(ended, 2, 1), tell(marked, 2, 1)}
	for name, test := range map[string]struct {
		lines    []line
		records  []store.Record
		done     int
		repeated int
		wrong    string
	}{
		"both": {bothDone, twoSlots, 2, 0, ""},
		"a second try after a death": {
			[]line{tell(began, 1, 1), tell(began, 1, 2), tell(ended, 1, 2), tell(marked, 1, 2)},
			[]store.Record{granted(1, 1, 1), granted(2, 1, 2), doneRecord(granted(2, 1, 2), 1)},
			1, 0, "",
		},
		"again, since the one that did it was killed before its record": {
			[]line{tell(began, 1, 1), tell(ended, 1, 1), tell(began, 1, 2), tell(ended, 1, 2), tell(marked, 1, 2)},
			[]store.Record{granted(1, 1, 1), granted(2, 1, 2), doneRecord(granted(2, 1, 2), 1)},
			1, 1, "",
		},
		"again after the record, by the log": {
			append(bothDone, tell(began, 2, 2)), twoSlots, 2, 1, "whose done record was in the ledger",
		},
		"by a lease from before the record, which came late": {
			[]line{tell(began, 1, 1), tell(ended, 1, 1), tell(marked, 1, 1), tell(began, 1, 2)},
			[]store.Record{granted(1, 1, 1), granted(2, 1, 2), doneRecord(granted(2, 1, 2), 1)},
			1, 1, "",
		},
		"again after the record, by the ledger": {
			bothDone, []store.Record{granted(1, 1, 1), doneRecord(granted(1, 1, 1), 1), doneBefore(granted(3, 1, 2), 1)}, 1, 0, "all is done until",
		},
		"extended after the record": {
			bothDone, []store.Record{granted(1, 1, 1), doneRecord(granted(1, 1, 1), 1), func() store.Record {
				r := doneBefore(granted(3, 1, 1), 1)
				r.WindowStart, r.WindowEnd = r.WindowEnd, r.WindowEnd.Add(time.Second)
				return r
			}()}, 1, 0, "all is done until",
		},
		"told without having been done": {
			[]line{tell(began, 1, 1), tell(failed, 1, 1), tell(marked, 1, 1)}, twoSlots[:2], 1, 0, "no command had ended well",
		},
		"too many begins": {
			[]line{tell(began, 1, 1), tell(began, 1, 2), tell(began, 1, 3), tell(began, 1, 4), tell(began, 1, 5), tell(began, 1, 6)}, nil, 0, 0, "more than 5 commands",
		},
		"too many attempts": {
			nil, []store.Record{granted(1, 1, 1), granted(2, 1, 2), granted(3, 1, 3), granted(4, 1, 4), granted(5, 1, 5), granted(6, 1, 6)}, 0, 0, "at most 5",
		},
		"an attempt that isn't counted": {
			nil, []store.Record{granted(1, 1, 1), func() store.Record { r := granted(2, 1, 2); r.Attempt = 1; return r }()}, 0, 0, "has attempt 1",
		},
		"an attempt given back before it began": {
			nil, []store.Record{granted(1, 1, 1), func() store.Record {
				r := granted(2, 1, 1)
				r.Kind, r.WindowStart, r.Attempt = store.KindRelease, r.WindowEnd, 0
				return r
			}(), func() store.Record { r := granted(3, 1, 2); r.Attempt = 1; return r }()}, 0, 0, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := &doneVerdict{}
			got.judgeSlots(test.lines, test.records, slotsFrom(1, 2), &gauge{})
			text := strings.Join(got.wrong, "\n")
			if (test.wrong == "") != (text == "") || !strings.Contains(text, test.wrong) {
				t.Errorf("judgeSlots() says %q, want %q", got.wrong, test.wrong)
			}
			if got.slots != 2 || got.done != test.done || got.repeated != test.repeated {
				t.Errorf("judgeSlots() = %+v, want %d done of 2, %d again", got, test.done, test.repeated)
			}
		})
	}
}

func TestItIsToldWhySlotsAreNotDone(t *testing.T) {
	lines := []line{tell(began, 2, 1)}
	records := []store.Record{granted(1, 2, 1)}
	for n := range int64(maxAttempts) {
		lines = append(lines, tell(began, 3, n+1), tell(failed, 3, n+1))
		records = append(records, granted(2+n, 3, n+1))
	}
	busyAt := time.Duration(slotStart(4)+1500) * ms
	got := &doneVerdict{}
	got.judgeSlots(lines, records, slotsFrom(1, 4), &gauge{stalls: []stall{{busyAt, 500 * ms}}})
	for _, why := range []string{neverBegun, ranOut, allFailed, tooBusy} {
		if got.undone[why] != 1 {
			t.Errorf("%s: %d slots, want 1", why, got.undone[why])
		}
	}
	if len(got.wrong) > 0 || got.done != 0 || got.attempts[maxAttempts] != 1 {
		t.Errorf("judgeSlots() = %+v", got)
	}
}

func TestNearlyAllSlotsMustBeDone(t *testing.T) {
	for _, c := range []struct {
		slots, done, busy int
		failed            bool
	}{{100, 100, 0, false}, {100, 90, 0, false}, {100, 89, 0, true}, {0, 0, 0, true}, {100, 82, 9, false}, {100, 81, 9, true}, {100, 0, 100, true}} {
		v := &doneVerdict{slots: c.slots, done: c.done, undone: map[string]int{tooBusy: c.busy}}
		if v.judgeExtent(); v.failed() != c.failed {
			t.Errorf("%+v: %q", c, v.wrong)
		}
	}
}

func TestAChoreIsTheSameForAllWhoAsk(t *testing.T) {
	fails, shortest, longest := 0, time.Hour, time.Duration(0)
	for n := range int64(1000) {
		l := line{workerType: "job-1", token: 1_700_000_000_000 + 6000*n}
		c := choreOf(l)
		if again := choreOf(l); again != c {
			t.Fatalf("choreOf(%v) = %v, and then %v", l, c, again)
		}
		shortest, longest = min(shortest, c.takes), max(longest, c.takes)
		if c.fails {
			fails++
		}
	}
	if shortest < 100*ms || longest > 900*ms || longest-shortest < 700*ms || fails < 50 || fails > 250 {
		t.Errorf("from %v to %v, %d of 1000 fail, want 100 ms to 900 ms, and about one of eight", shortest, longest, fails)
	}
}
