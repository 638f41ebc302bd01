package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// stage is a made-up world with an overlap 11 minutes into it: the older of two
// leases has a window up to minute 20, the newer one from there on.
type stage struct {
	*world
	older, newer *Process
}

// minutes is a time, or a stretch of it.
func minutes(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }

func newStage(f Faults) *stage {
	w := &world{
		o: Options{Faults: f}, beyond: true, origin: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), server: &server{},
		ledgers: map[string]*ledger{"sim": {byToken: map[int64][]*landed{}}},
	}
	s := &stage{world: w}
	for i, p := range []**Process{&s.older, &s.newer} {
		*p = &Process{Worker: i, world: w, host: &host{rate: 1}, answers: answers{own: map[string]bool{}}}
	}
	older := &Lease{
		WorkerType: "sim", Token: 1, Worker: 0, Start: minutes(0), End: minutes(20), Began: minutes(1), p: s.older,
		Why: workerlease.WindowEnded,
	}
	newer := &Lease{WorkerType: "sim", Token: 2, Worker: 1, Start: minutes(20), End: minutes(40), Began: minutes(11), p: s.newer}
	w.overlaps = []*Overlap{{
		At: minutes(11), Older: "the older", Newer: "the newer", older: older, newer: newer,
		windows: [2]Span{{older.Start, older.End}, {newer.Start, newer.End}},
	}}
	s.grants(older, 7)
	s.grants(newer, 8)
	return s
}

// grants puts the record of a lease in the ledger.
func (s *stage) grants(l *Lease, seq int64) {
	claim := fmt.Sprint("claim", seq)
	l.p.answers.own[claim] = true
	s.ledgers["sim"].byToken[l.Token] = []*landed{{claim: claim, seq: seq, end: s.origin.Add(l.End)}}
}

// hears gives a process an answer with the true time of then plus an error.
func (s *stage) hears(p *Process, at, more float64) *answer {
	p.answers.had = append(p.answers.had, answer{
		sent: minutes(at), left: minutes(at), at: minutes(at),
		stamp: store.Stamp{Time: s.origin.Add(minutes(at + more)), Granularity: time.Millisecond, Server: "a"},
	})
	return &p.answers.had[len(p.answers.had)-1]
}

// reads gives a process an answer with records, newest first. A claim is named after its key,
// unless it is another's.
func (s *stage) reads(p *Process, at float64, shown ...store.Record) {
	p.answers.had = append(p.answers.had, answer{sent: minutes(at), left: minutes(at), at: minutes(at), read: true, shown: shown})
}

func (s *stage) alarms(p *Process, at float64, kind Fault) {
	s.world.alarms = append(s.world.alarms, alarm{minutes(at), p, kind})
}

// jumped is a stage on which the store's clock jumps by ten minutes in minute 10. The older
// holder has not heard of it, and the newer knows only the time after it.
func jumped() *stage {
	s := newStage(Faults{Jumps: time.Hour})
	s.server.jumps = outages{{minutes(10), minutes(10) + 1, Jump}}
	s.hears(s.older, 5, 0)
	s.hears(s.newer, 10.5, 10)
	return s
}

// rolledBack is a stage on which the older's record was rolled back in minute 10, and the newer's
// stands at its key.
func rolledBack() *stage {
	s := newStage(Faults{Rollback: 0.1})
	s.grants(s.overlaps[0].newer, 7)
	s.newer.answers.own = map[string]bool{"other": true}
	s.ledgers["sim"].byToken[2][0].claim = "other"
	s.ledgers["sim"].undone = []undone{{minutes(10), store.Record{Seq: 7, Claim: "claim7"}}}
	return s
}

const second = 1. / 60

func TestAnOverlapIsReportedOnlyByWhoTellsOfItInTime(t *testing.T) {
	const reported, unreported, deaf, unexplained = "reported", "unreported", "deaf", "unexplained"
	others := store.Record{Seq: 7, Claim: "other", Kind: store.KindGrant}
	// alarmed lets the older hear of the jump in minute 12, and report it at some time.
	alarmed := func(at float64) func(s *stage) {
		return func(s *stage) {
			s.hears(s.older, 12, 10)
			s.alarms(s.older, at, Jump)
		}
	}
	tests := []struct {
		name  string
		stage *stage
		acts  func(s *stage)
		want  string
	}{
		{"an alarm at the first answer counts", jumped(), alarmed(12), reported},
		{"no alarm is unreported", jumped(), func(s *stage) { s.hears(s.older, 12, 10) }, unreported},
		{"an alarm from before the jump doesn't count", jumped(), alarmed(10 - second), unreported},
		{"an alarm between the jump and the overlap counts", jumped(), alarmed(10.5), reported},
		{"an alarm that comes after the next answer only is too late", jumped(), func(s *stage) {
			s.hears(s.older, 12, 10)
			s.hears(s.older, 13, 10)
			s.alarms(s.older, 13, Jump)
		}, unreported},
		{"an alarm three seconds after the answer is too late", jumped(), alarmed(12 + 3*second), unreported},
		{"an alarm may wait until an observer is done", jumped(), func(s *stage) {
			s.hears(s.older, 12, 10)
			s.older.answers.kept = []Span{{minutes(11.9), minutes(12.1)}}
			s.alarms(s.older, 12.1+second, Jump)
		}, reported},
		{"an alarm may wait until its process runs", jumped(), func(s *stage) {
			s.hears(s.older, 12, 10)
			s.older.host.stalls = outages{{minutes(12) + 1, minutes(15), Pause}}
			s.alarms(s.older, 15, Jump)
		}, reported},
		{"an alarm of somebody else doesn't count", jumped(), func(s *stage) {
			s.hears(s.older, 12, 10)
			s.alarms(&Process{world: s.world}, 12, Jump)
		}, unreported},
		{"an alarm of another kind doesn't count", jumped(), func(s *stage) {
			s.hears(s.older, 12, 10)
			s.alarms(s.older, 12, Rollback)
		}, unreported},
		{"who hears nothing is deaf, whatever the other hears, who could not know", jumped(), func(s *stage) {
			s.hears(s.newer, 12, 10)
		}, deaf},
		{"who hears nothing is deaf, and an alarm of who knew nothing then is none", jumped(), func(s *stage) {
			s.hears(s.newer, 12, 10)
			s.hears(s.newer, 30, 99)
			s.alarms(s.newer, 30, Jump)
		}, deaf},
		{"who came after the jump can't report it, whatever happens later", jumped(), func(s *stage) {
			s.server.jumps = append(s.server.jumps, outage{minutes(11.5), minutes(11.5) + 1, Jump})
			s.hears(s.newer, 12, 0)
			s.alarms(s.newer, 12, Jump)
		}, deaf},
		{"it is enough that the newer could know", jumped(), func(s *stage) {
			s.newer.answers.had[0] = *s.hears(s.newer, 9, 19) // It thinks that it is ahead.
			s.hears(s.newer, 12, 0)
		}, unreported},
		{"what goes wrong later is no report of what was wrong before", jumped(), func(s *stage) {
			s.hears(s.older, 12, 10).stamp.Skew = minutes(5)
			s.server.jumps = append(s.server.jumps, outage{minutes(13), minutes(13) + 1, Jump})
			s.hears(s.older, 14, 99)
			s.alarms(s.older, 14, Jump)
		}, deaf},
		{"an answer that leaves it open shows nothing", jumped(), func(s *stage) {
			s.hears(s.older, 12, 10).stamp.Skew = minutes(5)
		}, deaf},
		{"the first answer that doesn't leave it open does", jumped(), func(s *stage) {
			s.hears(s.older, 12, 10).stamp.Skew = minutes(5)
			s.hears(s.older, 13, 10)
			s.alarms(s.older, 13, Jump)
		}, reported},
		{"one that left it open long ago may have come from a slow store", jumped(), func(s *stage) {
			a := s.hears(s.older, 12, 7)
			a.sent = minutes(10.5)
		}, deaf},
		{"who heard from the old time only through another server has forgotten it", jumped(), func(s *stage) {
			a := s.hears(s.older, 12, 10)
			a.stamp.Server, a.stamp.Skew = "b", minutes(5)
			s.hears(s.older, 13, 10).stamp.Server = "b"
		}, deaf},
		{"a jump that neither lived through explains nothing", jumped(), func(s *stage) {
			s.older.answers.had = nil
			s.hears(s.older, 10.5, 10)
		}, unexplained},
		{"a jump behind the overlap explains nothing", jumped(), func(s *stage) {
			s.server.jumps[0] = outage{minutes(11.5), minutes(11.5) + 1, Jump}
		}, unexplained},
		{"a freeze of either host explains it", newStage(Faults{Freezes: time.Hour}), func(s *stage) {
			s.hears(s.older, 1, 0)
			s.older.host.stalls = outages{{minutes(2), minutes(10), Freeze}}
			s.hears(s.older, 12, 20)
			s.alarms(s.older, 12, Jump)
		}, reported},
		{"an alarm from before the freeze doesn't count", newStage(Faults{Freezes: time.Hour}), func(s *stage) {
			s.hears(s.older, 1, 0)
			s.alarms(s.older, 1.5, Jump)
			s.older.host.stalls = outages{{minutes(2), minutes(10), Freeze}}
			s.hears(s.older, 12, 20)
		}, unreported},
		{"without a freeze, nothing explains it", newStage(Faults{Freezes: time.Hour}), func(s *stage) {
			s.hears(s.older, 1, 0)
		}, unexplained},
		{"whose record is gone tells at the first read that shows it", rolledBack(), func(s *stage) {
			s.reads(s.older, 12, others)
			s.alarms(s.older, 12, Rollback)
		}, reported},
		{"whose record is gone can know by what begins in its window", rolledBack(), func(s *stage) {
			s.reads(s.older, 12, store.Record{Seq: 9, Claim: "third", Kind: store.KindGrant, WindowStart: s.origin.Add(minutes(19))})
		}, unreported},
		{"whose record is gone can know if none is so new", rolledBack(), func(s *stage) {
			s.reads(s.older, 12, store.Record{Seq: 6, Claim: "before", Kind: store.KindGrant})
		}, unreported},
		{"a read that doesn't go back so far shows nothing", rolledBack(), func(s *stage) {
			s.reads(s.older, 12, store.Record{Seq: 9, Claim: "third", Kind: store.KindGrant, WindowStart: s.origin.Add(minutes(20))})
		}, deaf},
		{"the other, whose record is there, could not know", rolledBack(), func(s *stage) { s.reads(s.newer, 12, others) }, deaf},
		{"an alarm from before the rollback doesn't count", rolledBack(), func(s *stage) {
			s.alarms(s.older, 9, Rollback)
			s.reads(s.older, 12, others)
		}, unreported},
		{"a rollback of another record explains nothing", rolledBack(), func(s *stage) {
			s.ledgers["sim"].undone[0].record = store.Record{Seq: 3, Claim: "claim3"}
			s.reads(s.older, 12, others)
		}, unexplained},
		{"clocks that race are wrong from the beginning", newStage(Faults{Drift: 0.025}), func(s *stage) {
			s.alarms(s.older, 0.5, Jump)
			s.hears(s.older, 12, 20)
		}, reported},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, got := test.stage, unreported
			test.acts(s)
			s.judge()
			switch o := s.overlaps[0]; {
			case o.Reported && o.Deaf || (o.Reported || o.Deaf) && len(s.violations) > 0:
				t.Errorf("judge() = reported %v, deaf %v, %q, want one of them", o.Reported, o.Deaf, s.violations)
			case len(s.violations) > 0:
				got = unexplained
			case o.Reported:
				got = reported
			case o.Deaf:
				got = deaf
			}
			if got != test.want {
				t.Errorf("judge() = %s, want %s", got, test.want)
			}
		})
	}
}
