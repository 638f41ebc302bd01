package verify

import (
	"slices"
	"strings"
	"time"

	"github.com/slotlease/slotlease/store"
)

// losses finds who may have worked beside somebody whose record the store has lost.
type losses struct {
	recent []store.Record // the newest that workers obeyed, oldest first
	lost   []lostTerm     // by claim
	said   []store.Lost   // what workers have said
	sayers []int64        // the records in which they said so
	judged []string       // the claims that were judged by records that are forgotten
}

// lostTerm is a term of which records are lost: what the newest of these says, with the earliest start, and the lowest key.
type lostTerm struct {
	store.Lost
	lowest int64
}

// obeyed takes in a record that workers obey.
func (l *losses) obeyed(v *Verifier, r store.Record) {
	if len(l.recent) == most {
		l.judge(v)
		for _, x := range l.lost {
			l.judged = append(l.judged, x.Claim)
		}
		l.lost, l.said, l.sayers, l.judged = nil, newest(l.said), newest(l.sayers), newest(l.judged)
		l.recent = slices.Clone(l.recent[most/2:])
	}
	l.recent = append(l.recent, r)
	lost, says := r.Lost()
	if !says || slices.ContainsFunc(l.recent, lost.Is) {
		return
	}
	if !slices.ContainsFunc(l.said, func(s store.Lost) bool { return s.Seq == lost.Seq && s.Claim == lost.Claim }) {
		l.said, l.sayers = append(l.said, lost), append(l.sayers, r.Seq)
		v.find(RecordsLost, r, "The store had record %d, of %q, with token %d until %s, and has lost it.", lost.Seq, lost.InstanceID, lost.Token, store.Format(lost.End))
	}
	if !slices.Contains(l.judged, lost.Claim) {
		l.merge(lost)
	}
}

// newest are the last of all.
func newest[T any](all []T) []T { return slices.Clone(all[max(0, len(all)-lookBack):]) }

// merge keeps what is known of the term of a claim. Each worker knows of the newest record that it had read.
func (l *losses) merge(lost store.Lost) {
	i := slices.IndexFunc(l.lost, func(x lostTerm) bool { return x.Claim == lost.Claim })
	if i < 0 {
		l.lost = append(l.lost, lostTerm{lost, lost.Seq})
		return
	}
	was := l.lost[i]
	newest, older := lost, was.Lost
	if older.Seq > newest.Seq {
		newest, older = older, newest
	}
	if newest.Start.IsZero() || !older.Start.IsZero() && older.Start.Before(newest.Start) {
		newest.Start = older.Start
	}
	l.lost[i] = lostTerm{newest, min(was.lowest, lost.Seq)}
}

// judge finds the grants of others whose windows overlap the terms that are lost. A term ends with its window, with its release, or when
// an operator says that nobody works. What a term stood above, with a lower token, had ended when that was granted: its end may be lost,
// too. After a split brain terms stand beside each other: then the other one may show that it went on.
func (l *losses) judge(v *Verifier) {
	signs := l.signs()
	for _, x := range l.lost {
		if !x.Start.IsZero() { // else no more is known of the term than when it ends
			l.beside(v, x, l.until(x.Lost), signs)
		}
	}
}

// until is up to when the holder of a lost term may have worked.
func (l *losses) until(x store.Lost) time.Time {
	until := x.End
	for _, r := range l.recent {
		if r.Kind == store.KindOverride && r.Token > x.Token || r.Kind == store.KindRelease && r.Claim == x.Claim {
			until = sooner(until, r.WindowStart)
		}
	}
	return until
}

func (l *losses) beside(v *Verifier, x lostTerm, until time.Time, signs map[string]time.Time) {
	ends := map[string]time.Time{} // of the terms that were released later
	var over time.Time             // since an operator said so
	for _, g := range slices.Backward(l.recent) {
		end, before := g.WindowEnd, g.WindowStart.Before(x.Start) || !g.ReadAt.IsZero() // An extension is appended before its window, and signs say when.
		followed := before && g.Seq < x.lowest && g.Token < x.Token && !signs[g.Claim].After(x.Start)
		kin := g.Claim == x.Claim || g.InstanceID == x.InstanceID || g.Group != "" && g.Group == x.Group
		for _, at := range []time.Time{ends[g.Claim], over} {
			if !at.IsZero() {
				end = sooner(end, at)
			}
		}
		switch {
		case g.Kind == store.KindRelease:
			ends[g.Claim] = g.WindowStart
		case g.Kind == store.KindOverride:
			over = g.WindowStart
		case g.Kind == store.KindGrant && !kin && !followed && g.WindowStart.Before(sooner(until, end)) && end.After(x.Start):
			v.find(BesideLost, g, "It grants %q a lease from %s, with token %d, and %q had one from %s, with token %d, until %s by record %d, which the store has lost.",
				g.InstanceID, store.Format(g.WindowStart), g.Token, x.InstanceID, store.Format(x.Start), x.Token, store.Format(x.End), x.Seq)
		}
	}
}

// mayHaveHad says of slots that nobody claimed, as far as records are left, that who did may be lost: those before each record that
// says that some are.
func (l *losses) mayHaveHad(f found) {
	missed := f[kind{MissedSlots, Warning}]
	if missed == nil {
		return
	}
	both := [][]Finding{missed.first, missed.newest}
	for _, sayer := range l.sayers {
		last := int64(0) // of the records before it that slots were missed beside
		for _, x := range slices.Concat(both...) {
			if x.Seq < sayer {
				last = max(last, x.Seq)
			}
		}
		for _, some := range both {
			for i := range some {
				if some[i].Seq == last && !strings.HasPrefix(some[i].Remedy, mayBeLost) {
					some[i].Remedy = mayBeLost + some[i].Remedy
				}
			}
		}
	}
}

const mayBeLost = "If the store has lost that they were claimed, see records-lost. Else: "

// signs are when the holders of terms are last known to have worked under them: by when they appended or released, or by what they say
// of their work.
func (l *losses) signs() map[string]time.Time {
	signs := map[string]time.Time{}
	sign := func(claim string, at time.Time) {
		if at.After(signs[claim]) {
			signs[claim] = at
		}
	}
	for _, r := range l.recent {
		if r.Kind == store.KindGrant {
			sign(r.Claim, r.ReadAt)
			sign(r.Claim, r.FixedAt)
		}
		if r.Kind == store.KindRelease {
			sign(r.Claim, r.WindowStart)
		}
		if o, tells := r.Outcome(); tells && o.InstanceID == r.InstanceID && o.SlotStart.Equal(r.SlotStart) && o.Attempt == r.Attempt && o.Cause != store.WorkerDied {
			sign(r.Claim, o.Ended)
		}
	}
	return signs
}

func sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
