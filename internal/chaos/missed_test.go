//go:build linux

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// second is a worker type with slots of a second.
var second = workerType{name: "alpha", interval: time.Second}

// always is a worker that lives from the start on.
func always(name string) history {
	return history{name: name, lives: []life{{pid: 100, started: 1, ready: 1}}}
}

// until is a worker that was struck at a time, and started again at another.
func until(name string, how kind, struck, again time.Duration) history {
	h := always(name)
	h.lives[0].struck, h.lives[0].how, h.lives[0].ended = struck, how, struck
	h.lives = append(h.lives, life{pid: 200, started: again, ready: again})
	return h
}

func on(worker string, k kind, begin, end time.Duration) *strike {
	return &strike{Kind: k, Worker: worker, Begin: begin, End: end}
}

func TestEachMissedSlotHasItsReason(t *testing.T) {
	// The slot from 5 s to 6 s of the boot clock; claims open at 4.75 s.
	zero := store.FromMillis(0)
	s := slotsOf(second, 5*time.Second, 6*time.Second, zero)[0]
	granted := []store.Record{grant(1, 5, "a")}
	trouble := always("a")
	trouble.lives[0].said = []said{{boot: 4800 * ms, Message: "append outcome unknown"}}
	for name, test := range map[string]struct {
		e    evidence
		want string
	}{
		"all killed before":                     {evidence{histories: []history{until("a", killLeasectl, 4000*ms, 5100*ms)}}, noWorker},
		"ready only when claims were open":      {evidence{histories: []history{until("a", killLeasectl, 4000*ms, 4900*ms)}}, noWorker},
		"one killed, one stopped":               {evidence{histories: []history{until("a", killLeasectl, 4000*ms, 5100*ms), always("b")}, strikes: []*strike{on("b", stopLeasectl, 4500*ms, 4900*ms)}}, noneRunning},
		"stopped, and let go before the claims": {evidence{histories: []history{always("a")}, strikes: []*strike{on("a", stopLeasectl, 4000*ms, 4500*ms)}}, unexplained},
		"another was stopped":                   {evidence{histories: []history{always("a"), always("b")}, strikes: []*strike{on("a", stopLeasectl, 4500*ms, 7000*ms)}}, unexplained},
		"server down":                           {evidence{histories: []history{always("a"), always("b")}, strikes: []*strike{on("", killServer, 4500*ms, 5500*ms)}}, storeDown},
		"one cut off, one killed":               {evidence{histories: []history{always("a"), until("b", killLeasectl, 4000*ms, 7000*ms)}, strikes: []*strike{on("a", netDown, 4500*ms, endless)}}, storeDown},
		"server down long before":               {evidence{histories: []history{always("a")}, strikes: []*strike{on("", killServer, 1000*ms, 2000*ms)}}, unexplained},
		"the store failed, by its own log":      {evidence{histories: []history{trouble}}, storeDown},
		"the machine was busy":                  {evidence{histories: []history{always("a")}, stalls: []stall{{5100 * ms, 90 * ms}}}, tooBusy},
		"it was so later":                       {evidence{histories: []history{always("a")}, stalls: []stall{{6500 * ms, 90 * ms}}}, unexplained},
		"nothing was wrong":                     {evidence{histories: []history{always("a")}}, unexplained},
		"claimed, then killed":                  {evidence{records: granted, histories: []history{until("a", killLeasectl, 4900*ms, 7000*ms)}}, claimedKilled},
		"claimed, then ended in order":          {evidence{records: granted, histories: []history{until("a", endLeasectl, 4900*ms, 7000*ms)}}, claimedEnded},
		"claimed, then stopped":                 {evidence{records: granted, histories: []history{always("a")}, strikes: []*strike{on("a", stopLeasectl, 4950*ms, 7000*ms)}}, claimedStop},
		"claimed, with the last one's guard":    {evidence{records: granted, histories: []history{always("a")}, strikes: []*strike{on("a", stopGuard, 4000*ms, 7000*ms)}}, claimedBusy},
		"claimed, and the command killed":       {evidence{records: granted, histories: []history{always("a")}, strikes: []*strike{on("a", killCommand, 5010*ms, 5010*ms)}}, commandKilled},
		"claimed, and no reply":                 {evidence{records: granted, histories: []history{trouble}}, claimedCut},
		"claimed, and nothing was wrong":        {evidence{records: granted, histories: []history{always("a")}}, unexplained},
		"claimed by a stranger":                 {evidence{records: granted, histories: []history{always("b")}}, unexplained},
	} {
		t.Run(name, func(t *testing.T) {
			if got, detail := test.e.missed(s); got != test.want {
				t.Errorf("missed() = %q (%s), want %q", got, detail, test.want)
			}
		})
	}
}

func TestSlotsAreThoseThatLieWithin(t *testing.T) {
	zero := store.FromMillis(500)
	var got []int64
	for _, s := range slotsOf(second, 600*ms, 3600*ms, zero) {
		got = append(got, s.start.UnixMilli(), int64(s.begin/ms))
	}
	if want := []int64{2000, 1500, 3000, 2500}; !slices.Equal(got, want) {
		t.Errorf("slotsOf(600ms, 3.6s) = %v, want %v", got, want)
	}
}
