package page

import (
	"context"
	"reflect"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/doctor"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/verification"
)

const (
	// mostSlots is how many slots the page shows of a worker type.
	mostSlots = 500
	// The row of a worker type has up to mostRecent of its slots: fewer where all rows would have more than allRecent, but
	// leastRecent at least.
	mostRecent, leastRecent, allRecent = 50, 10, 10_000
	// examineEvery is how old an examination may be, which reads whole ledgers; and examineAgain if it couldn't verify them.
	examineEvery, examineAgain = 5 * time.Minute, 30 * time.Second
)

// picture is what a look has found: the status, and what else the view shows.
type picture struct {
	status inspect.Overview
	event  string // that tells the rest; empty: there is none
	rest   any
	// marks change if a row, by the name of its worker type, or the rest, by no name, is to be told again.
	marks map[string]any
}

// typeJSON is the event about one worker type.
type typeJSON struct {
	Slots   inspect.Snapshot `json:"slots"`
	Workers inspect.Crew     `json:"workers"`
	// Whys are the reasons, by the starts of slots; of a report alone.
	Whys map[string]inspect.Answer `json:"whys,omitempty"`
}

// typeOf are the newest slots of a worker type, so many at most, and its workers.
func typeOf(ctx context.Context, r inspect.Reader, workerType string, last int) (one typeJSON, err error) {
	if one.Slots, err = r.Slots(ctx, workerType, last); err == nil {
		one.Workers, err = workersOf(ctx, r, workerType)
	}
	return one, err
}

// workersOf are those of a type, or of all. A roster that can't be read hides nothing else: the warning says why.
func workersOf(ctx context.Context, r inspect.Reader, workerType string) (inspect.Crew, error) {
	crew, err := r.Workers(ctx, workerType)
	if inspect.WithoutRoster(err) {
		return inspect.Crew{StoreTime: crew.StoreTime, Store: crew.Store, Workers: []inspect.Worker{}, Warning: err.Error()}, nil
	}
	return crew, err
}

// look looks at a subject.
func (p *Page) look(ctx context.Context, of subject) (now picture, err error) {
	now = picture{marks: map[string]any{}, event: of.view, status: inspect.Overview{Types: []inspect.TypeStatus{}}}
	r, err := p.Open(ctx, of.workerType)
	if err != nil {
		return now, err
	}
	read := time.Now()
	switch of.view {
	case "overview":
		now.event = ""
		types := max(r.Ledger.(*inspect.Cache).Types(), 1)
		now.status, err = r.Status(ctx, "", max(leastRecent, min(mostRecent, allRecent/types)))
	case "type":
		if now.status, err = r.Status(ctx, of.workerType, mostRecent); err == nil {
			var one typeJSON
			one, err = typeOf(ctx, r, of.workerType, mostSlots)
			now.rest = one
			one.Slots.StoreTime, one.Slots.Units, one.Workers.StoreTime, one.Workers.Units = "", nil, "", nil
			now.marks[""] = one
		}
	case "machines":
		var crew inspect.Crew
		crew, err = workersOf(ctx, r, "")
		now.event, now.rest, now.status.StoreTime, now.status.Store = "workers", crew, crew.StoreTime, crew.Store
		crew.StoreTime, crew.Units = "", nil
		now.marks[""] = crew
	case "health":
		var found health
		found, err = p.health(ctx)
		now.rest, now.status.StoreTime, now.status.Store = found, found.Doctor.StoreTime, found.Doctor.Store
		now.marks[""], read = found.at, found.at
	}
	if at, unread := time.Parse(time.RFC3339, now.status.StoreTime); unread == nil {
		p.ahead.Store(new(at.Sub(read)))
	}
	for _, t := range now.status.Types {
		t.NextInMs, t.OverdueMs = nil, min(t.OverdueMs, 1) // What counts down or up is no reason.
		now.marks[t.WorkerType] = t
	}
	return now, p.forsake(err)
}

// update is a status with those rows that changed, and the names of those that are gone.
type update struct {
	inspect.Overview

	Gone []string `json:"gone,omitempty"`
}

// whole tells all.
func (now picture) whole(event func(name string, value any) []byte) []byte {
	told := event("status", now.status)
	if now.event != "" {
		told = append(told, event(now.event, now.rest)...)
	}
	return told
}

// since tells what has changed since another look.
func (now picture) since(last picture, event func(name string, value any) []byte) (told []byte) {
	u := update{Overview: now.status}
	u.Types = []inspect.TypeStatus{}
	for _, t := range now.status.Types {
		if !reflect.DeepEqual(now.marks[t.WorkerType], last.marks[t.WorkerType]) {
			u.Types = append(u.Types, t)
		}
	}
	for name := range last.marks {
		if _, there := now.marks[name]; !there {
			u.Gone = append(u.Gone, name)
		}
	}
	if len(u.Types)+len(u.Gone) > 0 {
		told = event("update", u)
	}
	if !reflect.DeepEqual(now.marks[""], last.marks[""]) {
		told = append(told, event(now.event, now.rest)...)
	}
	return told
}

// health is what an examination of the store has found, for all who ask.
type health struct {
	Doctor doctor.JSON          `json:"doctor"`
	Verify *verification.Result `json:"verify"` // nil if the ledgers can't be read

	at         time.Time
	unverified error
}

// health examines the store, and verifies its ledgers, unless that was done of late. One does so at a time.
func (p *Page) health(ctx context.Context) (found health, err error) {
	select {
	case p.examining <- struct{}{}:
		defer func() { <-p.examining }()
	case <-ctx.Done():
		return found, ctx.Err()
	}
	lasts := examineEvery
	if p.examined.Verify == nil {
		lasts = examineAgain
	}
	if time.Since(p.examined.at) < lasts-lookEvery {
		return p.examined, nil
	}
	report, err := doctor.Examine(ctx, p.o.Target, doctor.Options{Timeout: p.o.Timeout, Scrub: p.o.Scrub})
	if err != nil {
		return found, err
	}
	found.Doctor, found.at = report.JSON(), time.Now()
	r, err := p.Open(ctx, "")
	if err == nil {
		var result verification.Result
		result, err = verification.Of(ctx, r.Target, r.Ledger, verification.Options{Timeout: p.o.Timeout})
		found.Verify = &result
	}
	if found.unverified = err; err != nil {
		found.Verify = nil
	}
	if ctx.Err() == nil { // Otherwise who asked has gone, and what is found says nothing to others.
		p.examined = found
	}
	return found, nil
}
