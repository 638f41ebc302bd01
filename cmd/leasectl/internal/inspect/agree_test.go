package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/benbjohnson/clock"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/charges"
	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/promlease"
)

// seen is what one of those that show workers says: who holds, and the standings by name.
type seen struct {
	holder    string
	standings string
	present   int
	gone      int
}

// looks are what status, inspect workers and why say of a worker type now.
func looks(t *testing.T, l store.Ledger, workerType string) (s overview, all map[string]seen) {
	t.Helper()
	ledger := charges.New(l)
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{})
	s = overview{}
	c, a := crew{workerType: workerType}, answer{workerType: workerType}
	err := errors.Join(s.take(t.Context(), ledger, workerType), a.take(t.Context(), ledger, Question{}))
	var bad error
	c.at = s.at
	c.workers, bad = client.Candidates(t.Context(), workerType)
	must(t, errors.Join(err, bad, c.findHolders(t.Context(), ledger)))
	status, workers, why := seen{}, seen{}, seen{}
	if one := s.types[0]; one.holder.State != "" {
		status.holder = holderOf(one.holder)
	}
	status.present, status.gone = s.types[0].present, s.types[0].gone
	var ofCrew, ofWhy []string
	for _, w := range c.workers {
		ofCrew = append(ofCrew, w.InstanceID+" "+string(w.Standing))
		if w.Holds {
			workers.holder = w.InstanceID
		}
		if w.Standing.There() {
			workers.present++
		} else if w.Standing == workerlease.Gone {
			workers.gone++
		}
	}
	for _, r := range c.absent {
		workers.holder = r.InstanceID
	}
	if a.Holder != nil {
		why.holder = holderOf(*a.Holder)
	}
	for _, v := range a.Workers {
		if v.InRoster {
			ofWhy = append(ofWhy, v.InstanceID+" "+string(v.Standing))
		}
	}
	slices.Sort(ofCrew)
	slices.Sort(ofWhy)
	workers.standings, why.standings = strings.Join(ofCrew, ", "), strings.Join(ofWhy, ", ")
	status.standings, why.present, why.gone = workers.standings, workers.present, workers.gone
	return s, map[string]seen{"status": status, "inspect workers": workers, "why": why}
}

// agreed is what all of them say.
func agreed(t *testing.T, all map[string]seen) seen {
	t.Helper()
	for who, says := range all {
		if says != all["status"] {
			t.Fatalf("%v: %s says %+v, and status %+v", time.Now(), who, says, all["status"])
		}
	}
	return all["status"]
}

// Two workers have a job whose runs succeed, fail, take longer than their slot, and are cut off from the store. At each moment
// all that shows them says the same.
func TestAllThatShowsWorkersAgrees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		workers, links, metrics := map[string]*workerlease.WorkerLease{}, map[string]*faultstore.Ledger{}, map[string]*prometheus.Registry{}
		run := 0
		for i, name := range []string{"a", "b"} {
			metrics[name] = prometheus.NewRegistry()
			m, err := promlease.New(metrics[name], promlease.Options{})
			must(t, err)
			links[name] = faultstore.New(ledger, faultstore.Options{})
			client := workerlease.NewClient(links[name], workerlease.ClientOptions{Roster: true, Observer: m})
			workers[name], err = client.StartTask(ctx, workerlease.Options{
				WorkerType: "job", InstanceID: name, Priority: i, LeaseInterval: time.Minute, FailoverWithin: 10 * time.Second, Job: &workerlease.Job{MaxAttempts: 2},
			}, func(ctx context.Context, _ workerlease.Lease) error {
				run++
				takes, result := 20*time.Second, error(nil)
				switch run % 5 {
				case 2:
					result = errors.New("disk full")
				case 4:
					takes = 150 * time.Second
				}
				select {
				case <-time.After(takes):
				case <-ctx.Done():
					return ctx.Err()
				}
				return result
			})
			must(t, err)
		}
		held, standings, late := map[string]int{}, map[string]bool{}, time.Duration(0)
		for moment := range 900 {
			time.Sleep(1234 * time.Millisecond)
			synctest.Wait()
			switch moment {
			case 300:
				links["a"].Break(faultstore.Down())
			case 500:
				links["a"].Mend()
			}
			if moment < 90 {
				continue // There is no slot yet.
			}
			s, all := looks(t, ledger, "job")
			says := agreed(t, all)
			held[says.holder]++
			standings[says.standings] = true
			window := s.types[0].holder.Window
			edge := func(at time.Time) bool { return s.at.Sub(at).Abs() < 1500*time.Millisecond }
			overdue := s.types[0].overdue(s.at)
			own := max(0, s.at.Sub(workers["b"].Status().Due)) // b is never cut off.
			if _, known := workers["b"].Holder(); known == (says.holder != "") && (overdue-own).Abs() > time.Second {
				t.Fatalf("%v: the holder is %q, and the job is overdue for %v by status, for %v by b", s.at, says.holder, overdue, own)
			}
			late = max(late, overdue)
			for name, w := range workers {
				holding := w.Status().Holding
				if metric := gauge(t, metrics[name], "slotlease_lease_holding") == 1; metric != holding {
					t.Fatalf("%v: %s holds by Status: %v, by its metric: %v", s.at, name, holding, metric)
				}
				if h, known := w.Holder(); known && h.InstanceID == name && !holding && !edge(window.Start) && !edge(window.End) {
					t.Fatalf("%v: %s names itself as the holder, and doesn't hold", s.at, name)
				}
				if says.holder == name != holding && !edge(window.Start) && !edge(window.End) {
					t.Fatalf("%v: %s holds by Status: %v, and by the ledger %q does, up to %v", s.at, name, holding, says.holder, window.End)
				}
			}
		}
		cancel()
		if held["a"] < 30 || held["b"] < 30 || held[""] < 100 || !standings["a gone, b holds"] || !standings["a gone, b candidate"] {
			t.Errorf("a and b held at %v moments, with the standings %v; want each, and nobody, and that a was gone", held, standings)
		}
		if late < 10*time.Second {
			t.Errorf("the job was overdue for %v at most: the test shows nothing", late)
		}
		for _, w := range workers {
			_ = w.StopLeasing(context.WithoutCancel(t.Context()))
		}
	})
}

// ledgerAt is a ledger in memory with records, at a time.
func ledgerAt(now time.Time, records ...store.Record) *memory.Ledger {
	c := clock.NewMock()
	c.Set(now)
	l := memory.New(memory.Options{Clock: c})
	for _, r := range records {
		l.Put(r)
	}
	return l
}

// recorded is the same so many minutes after noon.
func recorded(at float64, records ...store.Record) *memory.Ledger {
	return ledgerAt(recordtest.Minutes(at), records...)
}

// gauge is the value of a gauge of the worker type.
func gauge(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// What is killed is no candidate, as soon as the ledger or the roster shows it.
func TestStandingsOfWorkers(t *testing.T) {
	minutes := recordtest.Minutes
	part := recordtest.Part(1, recordtest.Grant(1, 0, "a"), 0, 1)
	job := part
	job.Attempt = 1
	whole := recordtest.Grant(1, 0, "a")
	done := recordtest.Done(job, 2, job.SlotEnd, minutes(0.5))
	read := func(r store.Record, at float64) store.Record { r.ReadAt = minutes(at); return r }
	next := read(recordtest.Grant(3, 1, "a"), 4.9)
	next.Attempt, next.Done, next.DoneUntil = 1, done.Done, done.DoneUntil
	nextDone := read(recordtest.Done(next, 4, next.SlotEnd, minutes(6)), 6)
	nextDone.Metadata = recordtest.Outcome(next, minutes(6), store.Succeeded).Metadata()
	byOther := read(recordtest.Done(next, 4, next.SlotEnd, minutes(6)), 6) // while next is the head
	byOther.DoneUntil, byOther.Done, byOther.Metadata = next.DoneUntil, next.Done, ""
	byOther.Kind = store.KindOrder
	longer := recordtest.Part(1, recordtest.Grant(1, 0, "a"), 0, 3)
	free := read(recordtest.Release(longer, 2, minutes(2.5)), 2.5)
	presence := store.Presence{WorkerType: "export", ID: "a", InstanceID: "a", Host: "host", PID: 1, Phase: store.PhaseHolder, Seen: minutes(0.8), Next: minutes(2)}
	for name, c := range map[string]struct {
		records []store.Record
		change  func(*store.Presence)
		at      float64
		want    workerlease.Standing
	}{
		"it holds":                             {[]store.Record{part}, nil, 0.9, workerlease.Holds},
		"its lease has ended without a word":   {[]store.Record{part}, nil, 1.4, workerlease.Gone},
		"and that of its job":                  {[]store.Record{job}, nil, 1.4, workerlease.Gone},
		"it was seen since":                    {[]store.Record{part}, func(p *store.Presence) { p.Seen, p.Phase = minutes(1.1), store.PhaseCandidate }, 1.4, workerlease.Contends},
		"its slot is over":                     {[]store.Record{whole}, func(p *store.Presence) { p.Seen, p.Next = minutes(4.9), minutes(6) }, 5.4, workerlease.Contends},
		"its job is done, and its lease isn't": {[]store.Record{job, done}, nil, 0.9, workerlease.Contends},
		"it was not seen for long":             {[]store.Record{whole}, nil, 2.2, workerlease.Gone},
		"it has claimed since":                 {[]store.Record{job, done, next}, nil, 5.9, workerlease.Holds},
		"it is done since":                     {[]store.Record{job, done, next, nextDone}, nil, 7.1, workerlease.Contends},
		"an operator has written since":        {[]store.Record{job, done, next, byOther}, nil, 7.1, workerlease.Gone},
		"it has extended its lease since":      {[]store.Record{longer, read(recordtest.Part(2, longer, 3, 5), 2)}, nil, 2.9, workerlease.Holds},
		"it has released since":                {[]store.Record{longer, free}, nil, 3.6, workerlease.Contends},
		"it has claimed long ago":              {[]store.Record{job, done, next, nextDone}, nil, 9, workerlease.Gone},
		"another process of that name":         {[]store.Record{part}, func(p *store.Presence) { p.PID = 2 }, 1.4, workerlease.Contends},
		"it has stopped":                       {[]store.Record{part}, func(p *store.Presence) { p.Phase = store.PhaseStopped }, 0.9, workerlease.Left},
	} {
		l := recorded(c.at, c.records...)
		p := presence
		if c.change != nil {
			c.change(&p)
		}
		must(t, l.Attend(t.Context(), []store.Presence{p}))
		_, all := looks(t, l, "export")
		if got, want := agreed(t, all).standings, fmt.Sprint("a ", c.want); got != want {
			t.Errorf("%s: all say %q, want %q", name, got, want)
		}
	}
}
