package lever

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease/operate"
)

// A trigger is obeyed by workers with a job alone, and only if they are there.
func TestATriggerThatNobodyIsThereForIsDoubted(t *testing.T) {
	t.Parallel()
	now := recordtest.Minutes(7)
	worker := func(name string, next time.Time, job *store.JobTimes) store.Presence {
		return store.Presence{
			WorkerType: "export", ID: name, InstanceID: name, Schedule: "every 5m", Phase: store.PhaseCandidate,
			Since: recordtest.Minutes(-60), Seen: next.Add(-time.Minute), Next: next, Job: job,
		}
	}
	soon, job := now.Add(30*time.Second), &store.JobTimes{StartWithin: time.Minute}
	dead, stopped := worker("dead", recordtest.Minutes(2), job), worker("stopped", soon, job)
	stopped.Phase = store.PhaseStopped
	const nobody = "no worker of export is there, by the roster: unless one comes before 2026-03-02T13:07:00.001Z, nobody runs it"
	const noJob = "no worker of export runs a job once per slot, by the roster, so none would run it for a trigger; nothing was written"
	for name, test := range map[string]struct {
		crew          []store.Presence
		want, refused string
	}{
		"nobody is known":              {nil, nobody, ""},
		"all have gone":                {[]store.Presence{dead, stopped}, nobody, ""},
		"one has a job":                {[]store.Presence{dead, worker("a", soon, job)}, "", ""},
		"one leads":                    {[]store.Presence{worker("a", soon, nil)}, "", noJob},
		"one leads, and jobs are gone": {[]store.Presence{dead, worker("a", soon, nil)}, "", noJob},
		"one leads, and one has a job": {[]store.Presence{worker("a", soon, nil), worker("b", soon, job)}, "", ""},
	} {
		c := clock.NewMock()
		c.Set(now)
		l := memory.New(memory.Options{Clock: c})
		l.Put(recordtest.Grant(1, 0, "x"))
		if err := l.Attend(t.Context(), test.crew); err != nil {
			t.Fatal(err)
		}
		err := runs(t.Context(), storeuri.Target{}, l, "export")
		if got := fmt.Sprint(err); got != cmp.Or(test.refused, "<nil>") {
			t.Errorf("%s: a trigger is refused by %q, want %q", name, got, test.refused)
		}
		if err != nil {
			continue
		}
		desk := operate.Desk{Ledger: l, Clock: c} // How long it takes would make the order's time later.
		r, err := desk.Give(t.Context(), operate.Order{Kind: store.OrderTrigger, WorkerType: "export", For: time.Hour, InstanceID: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if got := doubt(t.Context(), l, r); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Whose worker was thought dead may say later that its work is done: that is waited for, and counts.
func TestASuccessAfterADeathEndsTheWait(t *testing.T) {
	t.Parallel()
	grant := recordtest.Grant(1, 0, "a")
	order := store.Order{Kind: store.OrderTrigger, At: grant.SlotStart, Until: grant.SlotStart.Add(time.Hour), By: "ann"}
	told := func(seq int64, result store.Result, cause store.Cause) store.Record {
		o := recordtest.Outcome(grant, recordtest.Minutes(1), result)
		o.Cause, o.GivenUp, o.Attempt = cause, result != store.Succeeded, 1
		return recordtest.Told(grant, seq, o)
	}
	text, err := order.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	asked := store.Record{WorkerType: "export", Seq: 1, Kind: store.KindOrder, Metadata: string(text)}
	died, done := told(3, store.Failed, store.WorkerDied), told(4, store.Succeeded, "")
	looks := func(looks ...[]store.Record) (n int, text string, result error) {
		w := waiting{options: &Options{}, order: asked, seen: 1, told: io.Discard}
		for over := false; !over && n < 100; n++ {
			over, result = w.look(looks[min(n, len(looks)-1)])
		}
		return n, w.text, result
	}
	for name, test := range map[string]struct {
		looks [][]store.Record
		code  int
		n     int
		text  string
	}{
		"a death alone":             {[][]store.Record{{died}}, exit.GivenUp, lateLooks, "attempt 1, by a, has failed: worker died, and was the last\n"},
		"and a success at once":     {[][]store.Record{{done, died}}, exit.OK, 1, "attempt 1, by a, has succeeded\n"},
		"and a success later":       {[][]store.Record{{died}, {died}, {done, died}}, exit.OK, 3, "attempt 1, by a, has succeeded\n"},
		"a failure that it says":    {[][]store.Record{{told(3, store.Failed, "")}}, exit.GivenUp, 1, "attempt 1, by a, has failed, and was the last\n"},
		"a success and then a word": {[][]store.Record{{told(4, store.Failed, store.WorkerDied), told(3, store.Succeeded, "")}}, exit.OK, 1, "attempt 1, by a, has succeeded\n"},
	} {
		n, text, result := looks(test.looks...)
		code := exit.OK
		if e, ok := errors.AsType[*exit.Error](result); ok {
			code = e.Code
		}
		if n != test.n || code != test.code || text != test.text {
			t.Errorf("%s: after %d looks code %d, %q; want %d, %d, %q", name, n, code, text, test.n, test.code, test.text)
		}
	}
}

// What is odd about an order is read before what was written: a mistyped name looks like one that was paused as it should be.
func TestAWarningStandsFirst(t *testing.T) {
	t.Parallel()
	text := Given{WorkerType: "oke", Seq: 1, Kind: store.OrderPause, Undo: "leasectl resume", Warning: "no worker of oke is known"}.text()
	if !strings.HasPrefix(text, "warning: no worker of oke is known\nwrote record 1 of oke: ") {
		t.Errorf("it says %q, want the warning first", text)
	}
}
