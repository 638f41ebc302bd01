package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

func TestStatusWarnsOfWhatIsOdd(t *testing.T) {
	now := recordtest.Minutes(42.5)
	held := recordtest.Grant(2, 8, "worker-a")
	failed := recordtest.Release(recordtest.Grant(1, 7, "worker-b"), 2, recordtest.Minutes(36))
	failed.Metadata = store.Outcome{Result: store.Failed, InstanceID: "worker-b", SlotStart: failed.SlotStart, SlotEnd: failed.SlotEnd}.Metadata()
	told := func(change func(o *store.Outcome)) store.Record {
		r, o := failed, store.Outcome{Result: store.Failed, InstanceID: "worker-b", SlotStart: failed.SlotStart, SlotEnd: failed.SlotEnd}
		change(&o)
		r.Metadata = o.Metadata()
		return r
	}
	givenUp := told(func(o *store.Outcome) { o.Exited, o.ExitCode, o.GivenUp, o.Attempt = true, 3, true, 3 })
	broke := told(func(o *store.Outcome) { o.Error = "no disk" })
	pause := store.Order{Kind: store.OrderPause, At: recordtest.Minutes(41), Until: recordtest.Minutes(60), By: "ann", Why: "upgrade"}
	paused := held
	paused.Orders, _ = store.FormatOrders([]store.Order{pause})
	part := func(g store.Record, seq int64, from, to float64) store.Record {
		return recordtest.Part(seq, g, from, to)
	}
	job := func(g store.Record, n int) store.Record { g.Attempt = n; return g }
	died := func(g, by store.Record, seq int64) store.Record {
		o := recordtest.Outcome(g, g.WindowEnd, store.Failed)
		o.Cause = store.WorkerDied
		return recordtest.Told(by, seq, o)
	}
	leader, other := part(recordtest.Grant(1, 7, "a"), 1, 35, 36), part(recordtest.Grant(2, 7, "b"), 2, 36.5, 40)
	other.Token = leader.Token + 1
	next := recordtest.NextSlot(4, other, 8, 40, 45)
	alone, rest := part(held, 1, 40, 41), part(held, 2, 41.5, 45)
	rest.InstanceID, rest.Claim, rest.Token = "b", "other", alone.Token+1
	long := job(recordtest.Grant(1, 6, "a"), 1)
	overran := part(long, 2, 35, 40)
	lost := recordtest.Outcome(long, recordtest.Minutes(36), store.Failed)
	lost.ExitCode, lost.Exited = 3, true
	over := recordtest.Release(overran, 3, recordtest.Minutes(36))
	over.Metadata = lost.Metadata()
	worker := func(name string, change func(*store.Presence)) store.Presence {
		p := store.Presence{ID: name, InstanceID: name, Host: "vm-1", Phase: store.PhaseCandidate, Schedule: "every 5m", Since: recordtest.Noon, Seen: now.Add(-time.Minute), Next: now.Add(time.Minute)}
		change(&p)
		return p
	}
	same := func(*store.Presence) {}
	for name, test := range map[string]struct {
		types   []string
		records []store.Record
		roster  []store.Presence
		want    []string
		orders  int
	}{
		"nothing":                 {[]string{"export"}, []store.Record{held}, []store.Presence{worker("worker-a", same)}, nil, 0},
		"without a roster":        {[]string{"export"}, []store.Record{held}, nil, nil, 0},
		"the holder isn't there":  {[]string{"export"}, []store.Record{held}, []store.Presence{worker("worker-b", same)}, []string{"worker-a holds, and isn't there by the roster"}, 0},
		"schedules differ":        {[]string{"export"}, []store.Record{held}, []store.Presence{worker("worker-a", same), worker("c", func(p *store.Presence) { p.Schedule = "every 7m" })}, []string{"schedules differ: every 5m, every 7m; give all workers of the type one schedule"}, 0},
		"a schedule written else": {[]string{"export"}, []store.Record{held}, []store.Presence{worker("worker-a", func(p *store.Presence) { p.Schedule = "every 5m0s" })}, nil, 0},
		"a schedule as cron":      {[]string{"export"}, []store.Record{held}, []store.Presence{worker("worker-a", func(p *store.Presence) { p.Schedule = "cron */5 * * * *" })}, nil, 0},
		"a clock":                 {[]string{"export"}, []store.Record{held}, []store.Presence{worker("worker-a", func(p *store.Presence) { p.Offset = -90 * time.Minute })}, []string{"the time of day of worker-a on vm-1 is 1h30m behind store time"}, 0},
		"clocks": {
			[]string{"export"},
			[]store.Record{held},
			[]store.Presence{worker("worker-a", func(p *store.Presence) { p.Offset = time.Minute }), worker("b", func(p *store.Presence) { p.Offset = -time.Hour })},
			[]string{"the time of day of b on vm-1 is 1h behind store time, that of worker-a on vm-1 is 1m ahead of store time"},
			0,
		},
		"the clock of one that is gone":                     {[]string{"export"}, []store.Record{held}, []store.Presence{worker("worker-a", same), worker("b", func(p *store.Presence) { p.Offset, p.Next = time.Hour, p.Seen })}, nil, 0},
		"the last slot failed":                              {[]string{"export"}, []store.Record{recordtest.Grant(1, 7, "worker-b"), failed}, nil, []string{"the last slot failed"}, 0},
		"given up":                                          {[]string{"export"}, []store.Record{recordtest.Grant(1, 7, "worker-b"), givenUp}, nil, []string{"the last slot failed: exit code 3, given up at attempt 3"}, 0},
		"failed with an error":                              {[]string{"export"}, []store.Record{recordtest.Grant(1, 7, "worker-b"), broke}, nil, []string{"the last slot failed: no disk"}, 0},
		"a leader's worker died, and another took over":     {[]string{"export"}, []store.Record{alone, rest, died(alone, rest, 3)}, nil, []string{"the work of worker-a failed in this slot: its worker died"}, 0},
		"a leader's worker died in the slot before":         {[]string{"export"}, []store.Record{leader, other, died(leader, other, 3), next}, nil, nil, 0},
		"a leader fell silent, and nobody has taken over":   {[]string{"export"}, []store.Record{alone}, nil, []string{"the lease of worker-a ended early in this slot: its worker fell silent"}, 0},
		"a leader fell silent in the slot before":           {[]string{"export"}, []store.Record{leader}, nil, []string{"the lease of the last slot ended early: its worker fell silent"}, 0},
		"a job's worker died, and another runs it":          {[]string{"export"}, []store.Record{job(alone, 1), job(rest, 2)}, nil, []string{"the work of worker-a failed in this slot: its worker died"}, 0},
		"a run that went on into the next slot failed":      {[]string{"export"}, []store.Record{long, overran, over}, nil, []string{"the slot from 12:30:00Z failed: exit code 3", "no success yet, for longer than the schedule allows"}, 0},
		"a worker died in a run that went on into the next": {[]string{"export"}, []store.Record{long, part(long, 2, 35, 42)}, nil, []string{"the slot from 12:30:00Z failed: its worker died", "no success yet, for longer than the schedule allows"}, 0},
		"names that differ by case":                         {[]string{"Export", "export"}, []store.Record{held}, nil, []string{"differs from export by its case only"}, 0},
		"paused":                                            {[]string{"export"}, []store.Record{paused}, nil, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledgerAt(now)
			for _, workerType := range test.types {
				for _, r := range test.records {
					r.WorkerType = workerType
					l.Put(r)
				}
				for _, p := range test.roster {
					p.WorkerType = workerType
					must(t, l.Attend(t.Context(), []store.Presence{p}))
				}
			}
			var stdout bytes.Buffer
			err := showStatus(t.Context(), storeuri.Target{Scheme: "sqlite"}, l, Options{JSON: true, Timeout: time.Minute}, Screen{Writer: &stdout})
			var o Overview
			must(t, errors.Join(err, json.Unmarshal(stdout.Bytes(), &o)))
			if got := o.Types[0]; !slices.Equal(got.Warnings, test.want) || len(got.Orders) != test.orders {
				t.Errorf("status warns of %q with %d orders, want %q and %d: %s", got.Warnings, len(got.Orders), test.want, test.orders, stdout.String())
			}
		})
	}
}
