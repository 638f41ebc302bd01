package runlog

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zapcore"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// What comes next is told once for each slot and change of holder, by store time.
func TestTheLogSaysWhatComesNext(t *testing.T) {
	slot := func(i int) slots.Slot {
		start := noon.Add(time.Duration(i) * time.Hour)
		return slots.Slot{Start: start, End: start.Add(time.Hour)}
	}
	lost := func(i int, token int64, until time.Time) event.Lost {
		return event.Lost{Worker: worker, Slot: slot(i), Holder: store.Record{InstanceID: "b", Token: token, WindowEnd: until}}
	}
	done := func(i, of int) event.Lost {
		return event.Lost{Worker: worker, Slot: slot(i), Holder: store.Record{InstanceID: "b", Token: 9, SlotStart: slot(of).Start, DoneUntil: slot(i).End}, Done: true}
	}
	changed := event.HolderChanged{Worker: worker, Holder: event.Holder{InstanceID: "c", Token: 8, From: noon.Add(time.Minute), Until: noon.Add(2 * time.Minute)}}
	sample := event.ClockSample{Worker: worker, StoreTime: noon.Add(23 * time.Minute)}
	hourly := slots.Must(slots.Every(time.Hour))
	for name, test := range map[string]struct {
		o      workerlease.Options
		once   bool
		events []event.Event
		want   []string
	}{
		"at the start":                   {o: workerlease.Options{Schedule: hourly}, events: []event.Event{sample, sample}, want: []string{"INFO first slot 2026-03-02T13:00:00.000Z in 36m59s"}},
		"at the start, with short slots": {o: workerlease.Options{Schedule: slots.Must(slots.Every(9 * time.Second))}, events: []event.Event{sample}},
		"where it begins at once":        {o: workerlease.Options{Schedule: hourly, FailoverWithin: time.Minute}, events: []event.Event{sample}},
		"of a job that may begin":        {o: workerlease.Options{WorkerType: "t", Schedule: hourly, Job: &workerlease.Job{StartWithin: 30 * time.Minute}}, events: []event.Event{sample}},
		"of a job that may not":          {o: workerlease.Options{WorkerType: "t", Schedule: hourly, Job: &workerlease.Job{}}, events: []event.Event{sample}, want: []string{"INFO first slot 2026-03-02T13:00:00.000Z in 36m59s"}},
		"of a job that catches up":       {o: workerlease.Options{WorkerType: "t", Schedule: hourly, Job: &workerlease.Job{CatchUp: workerlease.CatchUpNewest}}, events: []event.Event{sample}},
		"where a group may have it":      {o: workerlease.Options{Schedule: hourly, Group: "g"}, events: []event.Event{sample}},
		"in a slot of another": {
			o: workerlease.Options{Schedule: hourly, FailoverWithin: time.Minute}, events: []event.Event{sample, lost(0, 7, slot(0).End), lost(0, 7, slot(0).End), lost(1, 8, slot(1).End)},
			want: []string{`INFO slot 12:00:00.000Z: standby: held by "b", priority 0, until 13:00:00.000Z`, `INFO slot 13:00:00.000Z: standby: held by "b", priority 0, until 14:00:00.000Z`},
		},
		"when another takes over": {
			o: workerlease.Options{Schedule: hourly, FailoverWithin: time.Minute}, events: []event.Event{sample, changed, lost(0, 7, noon.Add(time.Minute)), changed, changed},
			want: []string{`INFO slot 12:00:00.000Z: standby: held by "b", priority 0, until 12:01:00.000Z, or longer while it lives`, `INFO slot 12:00:00.000Z: standby: held by "c", priority 0, until 12:02:00.000Z, or longer while it lives`},
		},
		"when it is done": {
			o: workerlease.Options{Schedule: hourly, FailoverWithin: time.Minute}, events: []event.Event{sample, done(0, 0), done(0, 0)},
			want: []string{`INFO slot 12:00:00.000Z: is done already, by "b"; next slot 2026-03-02T13:00:00.000Z in 36m59s`},
		},
		"when it is done, and others are": {
			o: workerlease.Options{Schedule: hourly, FailoverWithin: time.Minute}, events: []event.Event{sample, done(0, 1)},
			want: []string{`INFO slot 12:00:00.000Z: is done already; next slot 2026-03-02T13:00:00.000Z in 36m59s`},
		},
		"when it has done it": {
			o: workerlease.Options{Schedule: hourly, FailoverWithin: time.Minute}, events: []event.Event{sample, event.SlotDone{Worker: worker, Slot: slot(0)}},
			want: []string{"INFO slot 12:00:00.000Z: done", "INFO next slot 2026-03-02T13:00:00.000Z in 36m59s"},
		},
		"when it has done one late": {
			o: workerlease.Options{Schedule: hourly, FailoverWithin: time.Minute}, events: []event.Event{sample, event.SlotDone{Worker: worker, Slot: slots.Slot{Start: noon.Add(-time.Hour), End: noon}}},
			want: []string{"INFO slot 11:00:00.000Z: done"},
		},
		"once": {
			o: workerlease.Options{Schedule: hourly}, once: true, events: []event.Event{sample, lost(0, 7, slot(0).End), event.SlotDone{Worker: worker, Slot: slot(0)}},
			want: []string{`INFO slot 12:00:00.000Z: not claimed: held by "b", priority 0, until 13:00:00.000Z`, "INFO slot 12:00:00.000Z: done"},
		},
		"once, with a claim ahead": {
			o: workerlease.Options{Schedule: hourly}, once: true,
			events: []event.Event{sample, event.Lost{Worker: worker, Slot: slot(0), Holder: store.Record{InstanceID: "b", WindowStart: slot(0).End, WindowEnd: slot(1).End}}},
			want:   []string{`INFO slot 12:00:00.000Z: "b" has claimed the slot after it already`},
		},
	} {
		var stderr bytes.Buffer
		j := New(Options{To: &stderr, Level: zapcore.InfoLevel, Worker: worker, Once: test.once})
		now := time.Now()
		j.now = func() time.Time { now = now.Add(time.Second); return now } // By the wall clock it is any other time.
		j.Began(test.o, false)
		_ = written(j, &stderr)
		stderr.Reset()
		for _, e := range test.events {
			j.Observe(e)
		}
		var got []string
		for line := range strings.Lines(written(j, &stderr)) {
			_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			if rest = strings.Join(strings.Fields(rest), " "); !strings.HasPrefix(rest, "INFO ready") {
				got = append(got, rest)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatComesNextHasFieldsInJSON(t *testing.T) {
	text := logOf("json", zapcore.InfoLevel)
	for _, want := range []string{
		`"message":"first slot","nextSlot":"2026-03-02T12:05:00.000Z","nextSlotInMs":`,
		`"message":"standby","holder":"b","holderPriority":1,"until":"2026-03-02T12:05:00.000Z",`,
		`"message":"standby","holder":"c","holderPriority":0,"until":"2026-03-02T12:02:00.000Z",`,
		`"message":"slot done already","doneBy":"b","nextSlot":"2026-03-02T12:05:00.000Z",`,
		`"message":"next slot","nextSlot":"2026-03-02T12:05:00.000Z","nextSlotInMs":`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log as JSON has no %s:\n%s", want, text)
		}
	}
}
