package machine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/internal/machine"
	"github.com/slotlease/slotlease/workerlease/internal/timeline"
)

// What is shown to those that plan with slots of 5 min: whole, and cut into windows for a failover of a minute.
func TestTheFiguresOfASlot(t *testing.T) {
	const s = time.Second
	whole, parts, slot := plain(), plain(), slots.Slot{Start: eve, End: eve.Add(5 * time.Minute)}
	parts.Failover, parts.Once, parts.StartWithin = time.Minute, true, 30*s
	usual, ahead := parts, parts
	usual.StartWithin, ahead.Lead = machine.DefaultStart, 40*s
	serving := parts.Serving(machine.Trigger{Order: store.Order{Kind: store.OrderTrigger, At: eve, Until: eve.Add(90 * s)}})
	claiming, extending := parts.SampleAges(20 * s)
	for name, c := range map[string]struct{ got, want time.Duration }{
		"claims open":                         {parts.LeadOf(slot), 10 * s},
		"claims open by half of the failover": {ahead.LeadAfter(24 * time.Hour), 30 * s}, // half of the failover
		"a window is extended before it ends": {parts.Early(), 15 * s},
		"the longest window":                  {parts.LongestPart(), 45 * s},
		"the windows up to the next claims":   {time.Duration(parts.PartsBefore(290 * s)), 7},
		"windows that fit":                    {time.Duration(parts.PartsBefore(270 * s)), 6},
		"the least failover":                  {machine.MinFailover(s / 4), 2 * s},
		"the first retry":                     {machine.Standard.Retry(s, 1, 64*s), s},
		"the third retry":                     {machine.Standard.Retry(s, 3, 64*s), 4 * s},
		"the last retries":                    {machine.Standard.Retry(s, 5, 64*s), 8 * s}, // an eighth of the slot
		"a trigger's failover":                {serving.Failover, 45 * s},                  // half of its time
		"a trigger's slot":                    {serving.Schedule.At(eve.Add(89 * s)).Start.Sub(eve), 0},
		"the slot before a trigger's":         {serving.Schedule.At(eve.Add(-1)).Start.Sub(eve), -90 * s},
		"a whole slot":                        {time.Duration(whole.PartsBefore(290 * s)), 1},
		"the first window":                    {parts.WindowEnd(slot, eve).Sub(eve), 41428 * s / 1000}, // 290 s / 7
		"a window from the middle":            {parts.WindowEnd(slot, eve.Add(30*s)).Sub(eve), 82857 * s / 1000},
		"the last window":                     {parts.WindowEnd(slot, eve.Add(290*s)).Sub(eve), 300 * s},
		"the window of a whole slot":          {whole.WindowEnd(slot, eve.Add(s)).Sub(eve), 300 * s},
		"a job starts within":                 {parts.StartsWithin(slot), 30 * s},
		"a job starts by":                     {parts.StartBy(slot).Sub(eve), 30 * s},
		"a usual job starts by":               {usual.StartBy(slot).Sub(eve), 75 * s}, // a quarter of the slot
		"other work starts by":                {whole.StartBy(slot).Sub(eve), 300 * s},
		"a sample to claim by":                {claiming, 20 * s},
		"a sample to extend by":               {extending, 120 * s},
		"a read to extend by":                 {machine.HeadAge, 120 * s},
		"the least useful failover":           {machine.MinUsefulFailover(s/10, s/4), 1808 * s / 1000}, // 4 · (0.2 + 0.25 + 0.002)
		"the largest margin of a failover":    {machine.MaxFailoverMargin, 150 * s},
		"the least retention":                 {machine.MinRetention, 7200 * s},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

// An order to release is about the term in force, though the next slot may be claimed already, and lasts as long as that, but an hour at most.
func TestAnOrderToReleaseIsAboutTheTermInForce(t *testing.T) {
	held, grouped := recordtest.Grant(1, 0, "a"), recordtest.Grant(1, 0, "a")
	grouped.Group = "eu"
	next, week := recordtest.Grant(2, 1, "b"), held
	week.WindowEnd, week.SlotEnd = recordtest.Minutes(7*24*60), recordtest.Minutes(7*24*60)
	for name, c := range map[string]struct {
		records []store.Record
		claim   string
		at      float64
		want    int64 // 0: none is in force
		until   float64
	}{
		"nothing":                      {nil, "", 1, 0, 0},
		"a term":                       {[]store.Record{held}, "", 1, 1, 5},
		"its claim":                    {[]store.Record{held}, held.Claim, 1, 1, 5},
		"another claim":                {[]store.Record{held}, "other", 1, 0, 0},
		"a term that is over":          {[]store.Record{held}, "", 5, 0, 0},
		"a release":                    {[]store.Record{recordtest.Release(held, 2, recordtest.Minutes(1)), held}, "", 2, 0, 0},
		"a group":                      {[]store.Record{grouped}, "", 1, 0, 0},
		"the next slot is claimed":     {[]store.Record{next, held}, "", 4, 1, 5},
		"the claim of the next slot":   {[]store.Record{next, held}, next.Claim, 4, 2, 10},
		"the next slot has begun":      {[]store.Record{next, held}, "", 6, 2, 10},
		"nothing before the next slot": {[]store.Record{next}, "", 4, 2, 10},
		"a term of a week":             {[]store.Record{week}, "", 1, 1, 61},
	} {
		now := timeline.Interval{Earliest: recordtest.Minutes(c.at), Latest: recordtest.Minutes(c.at)}
		below, _ := machine.LookBelow(c.records, 64, now)
		head, until, err := below.Term(c.claim, now)
		if c.want == 0 && err == nil || c.want != 0 && (err != nil || head.Seq != c.want || !until.Equal(recordtest.Minutes(c.until))) {
			t.Errorf("%s: Term() = %d, %v, %v, want %d up to %v", name, head.Seq, until, err, c.want, recordtest.Minutes(c.until))
		}
		if c.want == 0 && name != "a group" && !errors.Is(err, machine.ErrNoTerm) {
			t.Errorf("%s: %v, want %v", name, err, machine.ErrNoTerm)
		}
	}
}

// Two releases of the tz database differ about a zone: a slot is done by its local time, and what isn't known to be of the zone by its start.
func TestWhatIsDoneIsDoneByEachReleaseOfTheZones(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	c := plain()
	c.Schedule = slots.Must(slots.Cron("0 3 * * *", "Europe/Berlin"))
	slot := c.Schedule.At(time.Date(2025, 1, 2, 12, 0, 0, 0, berlin)) // from 02:00 UTC on
	at := func(by time.Duration, zone string, offset time.Duration) machine.Carried {
		start := slot.Start.Add(by)
		return machine.Carried{DoneUntil: start.Add(24 * time.Hour), Done: store.Done{Start: start, End: start.Add(24 * time.Hour), Zone: zone, Offset: offset}}
	}
	const h = time.Hour
	for name, test := range map[string]struct {
		by    machine.Carried
		done  bool
		until time.Time
	}{
		"the slot":                           {at(0, "Europe/Berlin", h), true, slot.End},
		"by a release that has it later":     {at(h, "Europe/Berlin", 0), true, slot.End},
		"by a release that has it earlier":   {at(-h, "Europe/Berlin", 2*h), true, slot.End},
		"the slot before by such a release":  {at(-25*h, "Europe/Berlin", 2*h), false, slot.Start},
		"a slot 30 min before by such a one": {at(-90*time.Minute, "Europe/Berlin", 2*h), false, slot.Start},
		"an hour before, in another zone":    {at(-h, "", 0), false, slot.Start},
		"nothing":                            {machine.Carried{}, false, time.Time{}},
		"by a version that knows no slots":   {machine.Carried{DoneUntil: slot.End}, true, slot.End},
		"up to the slot, by such a version":  {machine.Carried{DoneUntil: slot.Start}, false, slot.Start},
	} {
		if done, until := c.IsDone(test.by, slot), c.DoneUntil(test.by); done != test.done || !until.Equal(test.until) {
			t.Errorf("%s: done %v, up to %v, want %v, %v", name, done, until, test.done, test.until)
		}
	}
}

// To readers without a schedule a record says which slot is done: as it has it, or as its kind and its slot show. Else what has ended is done.
func TestARecordSaysWhichSlotIsDone(t *testing.T) {
	grant := recordtest.Grant(1, 0, "a") // from 12:00 to 12:05
	said := recordtest.Done(grant, 2, recordtest.Minutes(5), recordtest.Minutes(4))
	with := func(r store.Record, change func(*store.Record)) store.Record { change(&r); return r }
	for name, c := range map[string]struct {
		r        store.Record
		from, to float64
		want     bool
	}{
		"the slot":                          {said, 0, 5, true},
		"the next one":                      {said, 5, 10, false},
		"one that started before it":        {said, -1, 6, true},
		"one that started before, a grant":  {with(grant, func(r *store.Record) { r.DoneUntil = recordtest.Minutes(5) }), -1, 6, false},
		"one that started before, of later": {with(said, func(r *store.Record) { r.DoneUntil = recordtest.Minutes(4) }), -1, 5, false},
		"one that had ended":                {with(grant, func(r *store.Record) { r.DoneUntil = recordtest.Minutes(5) }), -5, 5, true},
		"nothing":                           {grant, -5, 0, false},
		"what contradicts itself": {with(grant, func(r *store.Record) {
			r.DoneUntil, r.Done = recordtest.Minutes(5), store.Done{Start: recordtest.Minutes(0), End: recordtest.Minutes(10)}.String()
		}), -1, 6, false},
		"a trigger's run": {with(grant, func(r *store.Record) { r.Schedule = store.Triggered }), 0, 5, true},
	} {
		if got := machine.IsDoneIn(c.r, slots.Slot{Start: recordtest.Minutes(c.from), End: recordtest.Minutes(c.to)}); got != c.want {
			t.Errorf("%s: IsDoneIn() = %v, want %v", name, got, c.want)
		}
	}
}
