package explain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/explain"
)

// ranOnce are the records of a type whose worker c ran the job of 12:05 until 12:13, so that the slot of 12:10 was skipped. At
// 12:13:30.037 ann asked for one more run, which c made from 12:13:31 to 12:14.
func ranOnce() (records []store.Record, asked time.Time) {
	asked = minutes(13.5).Add(37 * time.Millisecond)
	first := recordtest.Part(1, change(grant(1, 1, "c"), func(r *store.Record) { r.Attempt = 1 }), 5, 13.2)
	done := recordtest.Done(first, 2, first.SlotEnd, minutes(13))
	done.Metadata = recordtest.Outcome(first, minutes(13), store.Succeeded).Metadata()
	done.Done = store.Done{Start: first.SlotStart, End: first.SlotEnd}.String()
	released := recordtest.Release(done, 3, minutes(13))
	released.Metadata = ""
	o := order(store.OrderTrigger, "", 0, 40)
	o.At = asked
	run := with(change(first, func(r *store.Record) {
		r.Seq, r.Claim, r.Schedule, r.SlotStart, r.SlotEnd = 4, "claim-of-run", store.Triggered, o.At, o.Until
		r.WindowStart, r.WindowEnd = asked.Add(963*time.Millisecond), minutes(14.2)
		r.Token, r.FixedAt, r.ReadAt = r.WindowStart.UnixMilli(), r.WindowStart, r.WindowStart
		r.DoneUntil, r.Done = done.DoneUntil, done.Done
	}), o)
	ended := run
	ended.Seq, ended.Kind, ended.WindowStart, ended.ReadAt, ended.Orders = 5, store.KindDone, run.WindowEnd, minutes(14), ""
	out := recordtest.Outcome(run, minutes(14), store.Succeeded)
	out.Begun = run.WindowStart
	ended.Metadata = out.Metadata()
	left := recordtest.Release(ended, 6, minutes(14))
	left.Metadata = ""
	return []store.Record{left, ended, run, released, done, first}, asked
}

// Those that didn't get the run of a trigger lost it in their turn: it is a slot of nobody's schedule, and no run before it kept them from it.
func TestARunThatATriggerAskedForIsNoSlotOfASchedule(t *testing.T) {
	records, asked := ranOnce()
	roster := []store.Presence{
		worker("b", func(p *store.Presence) { p.Seen, p.Next = minutes(14), minutes(19) }),
		worker("c", func(p *store.Presence) { p.Seen, p.Next = minutes(14), minutes(19) }),
	}
	goesOn := []string{"12:13 now c", "b higherPriority", "c had"}
	run := append([]string{"12:13 past c"}, goesOn[1:]...)
	over := append([]string{"12:13 past"}, goesOn[1:]...)
	scheduled := []string{"12:10 past nobody: stillRunning", "b stillRunning", "c stillRunning"}
	for name, test := range map[string]struct {
		at, now time.Time
		records []store.Record
		want    []string
	}{
		"while it runs":             {minutes(13.7), minutes(13.7), records[2:], goesOn},
		"in the midst of it":        {minutes(13.7), minutes(16), records, run},
		"from when it was asked":    {asked, minutes(16), records, over},
		"to the second":             {asked.Truncate(time.Second), minutes(16), records, over},
		"by its begin":              {asked.Add(963 * time.Millisecond), minutes(16), records, run},
		"between asked and begun":   {asked.Add(time.Millisecond), minutes(16), records, scheduled},
		"in the slot, before":       {minutes(13.2), minutes(16), records, scheduled},
		"at the start of the slot":  {minutes(10), minutes(16), records, []string{"12:10 past c nobody: stillRunning", "b stillRunning", "c stillRunning"}},
		"after it, within the slot": {minutes(14.5), minutes(16), records, scheduled},
	} {
		e := explain.Explain(explain.Question{At: test.at, Now: test.now, Records: test.records, Presences: roster})
		if diff := cmp.Diff(test.want, answer(e)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}
