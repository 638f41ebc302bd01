package failovers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// turn is when a worker worked under a lease, for certain: the first and the last moment at which that was valid. Two turns can have
// the same token, after a loss, so they are told apart by their identity.
type turn struct {
	who         string
	token       int64
	first, last time.Time
}

func (x *turn) String() string {
	const clock = "15:04:05.000"
	return fmt.Sprintf("%s with token %d from %s to %s", x.who, x.token, x.first.Format(clock), x.last.Format(clock))
}

// report is an event.WentBack.
type report struct {
	who string
	at  time.Time
	seq int64 // of the record that is lost; 0: the store has another history, which may lack records
}

// account is what is known of a team after a failover.
type account struct {
	loses    bool      // the store may lose what it has acknowledged
	failing  time.Time // when the failover began
	turns    []*turn
	reports  []report
	findings []verify.Finding
	records  map[int64]store.Record // those of the ledger, by their Seq
}

// verdict is what an account shows.
type verdict struct {
	wrong          []string // what must not be
	untold         []string // what must be told, and isn't; it may be told later
	overlaps, lost int
}

// judge looks for turns at the same time, and for what is told of them and of losses.
func (a account) judge() (v verdict) {
	for i, y := range a.turns {
		for _, x := range a.turns[:i] {
			switch {
			case !x.first.After(y.last) && !y.first.After(x.last):
				v.overlaps++
				a.overlap(&v, x, y)
			case !a.loses && (x.token == y.token || x.token < y.token != x.first.Before(y.first)):
				v.wrong = append(v.wrong, fmt.Sprintf("%v and %v: the later token isn't higher, on a store that keeps what it has acknowledged", x, y))
			}
		}
	}
	told := a.losses(&v)
	for _, r := range a.reports {
		switch {
		case r.at.Before(a.failing):
			v.wrong = append(v.wrong, fmt.Sprintf("%s reported a loss before the failover: record %d", r.who, r.seq))
		case r.seq == 0:
		case !a.loses:
			v.wrong = append(v.wrong, fmt.Sprintf("%s reports that record %d is lost, on a store that keeps what it has acknowledged", r.who, r.seq))
		case !told: // Workers may know different newest records, so one in the ledger is enough for all.
			v.untold = append(v.untold, fmt.Sprintf("%s reports that record %d is lost, and verify finds no lost record", r.who, r.seq))
		}
	}
	return v
}

// overlap judges two turns at the same time.
func (a account) overlap(v *verdict, x, y *turn) {
	what := fmt.Sprintf("%v worked beside %v", x, y)
	switch {
	case x.who == y.who:
		v.wrong = append(v.wrong, what+": one worker has one lease at a time")
		return
	case !a.loses:
		v.wrong = append(v.wrong, what+", on a store that keeps what it has acknowledged")
		return
	case x.first.Before(a.failing) && y.first.Before(a.failing):
		v.wrong = append(v.wrong, what+", before the failover")
		return
	}
	if !slices.ContainsFunc(a.reports, func(r report) bool { return a.names(r) && (r.who == x.who || r.who == y.who) }) {
		v.untold = append(v.untold, what+", and neither has reported a lost record")
	}
	if !a.found(x, y) && !a.found(y, x) {
		v.untold = append(v.untold, what+", and verify doesn't find that")
	}
}

// names says that a report names a record that this failover can have lost.
func (a account) names(r report) bool { return r.seq != 0 && !r.at.Before(a.failing) }

// found says that verify finds the lease of one turn granted beside that of another, whose record is lost.
func (a account) found(granted, lost *turn) bool {
	for _, f := range a.findings {
		if g := a.records[f.Seq]; f.Code != verify.BesideLost || g.InstanceID != granted.who || g.Token != granted.token {
			continue
		}
		for _, r := range a.records {
			l, is := r.Lost()
			if is && l.InstanceID == lost.who && l.Token == lost.token && strings.Contains(f.Text, fmt.Sprintf("%q had one from", l.InstanceID)) && strings.Contains(f.Text, fmt.Sprintf("by record %d, which the store has lost", l.Seq)) {
				return true
			}
		}
	}
	return false
}

// losses judges what verify finds, and says whether it finds that records are lost.
func (a account) losses(v *verdict) (told bool) {
	for _, f := range a.findings {
		lost := f.Code == verify.RecordsLost
		if lost {
			v.lost++
			told = true
		}
		switch {
		case !a.loses && (lost || f.Code == verify.BesideLost):
			v.wrong = append(v.wrong, fmt.Sprintf("verify finds %s in record %d, on a store that keeps what it has acknowledged: %s", f.Code, f.Seq, f.Text))
		case lost:
			if l, is := a.records[f.Seq].Lost(); !is || !slices.ContainsFunc(a.reports, func(r report) bool { return a.names(r) && r.seq == l.Seq }) {
				v.untold = append(v.untold, fmt.Sprintf("verify finds %s in record %d, and no worker has reported it: %s", f.Code, f.Seq, f.Text))
			}
		case f.Severity == verify.Fault && f.Code != verify.BesideLost:
			v.wrong = append(v.wrong, fmt.Sprintf("verify finds %s in record %d: %s", f.Code, f.Seq, f.Text))
		}
	}
	return told
}
