//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// tryOf is a try as it should be: slots of 10 s, the boot clock being store time; the
// holder is killed 3.2 s into a slot, 1 s before the end of its window, and the
// standby begins right behind that.
type tryOf struct {
	lines   []line
	records []store.Record
	of      []history
}

func goodTry() tryOf {
	grantOf := func(seq, from, to, token int64, instance string) store.Record {
		r := grant(seq, 1, instance)
		r.SlotStart, r.SlotEnd = store.FromMillis(10_000), store.FromMillis(20_000)
		r.WindowStart, r.WindowEnd, r.Token, r.Claim = store.FromMillis(from), store.FromMillis(to), token, fmt.Sprint("claim", token)
		return r
	}
	held := by("try-000-0", beats(10_020*ms, 13_200*ms, 10, 10_000))
	taken := by("try-000-1", beats(14_500*ms, 14_600*ms, 20, 14_400))
	name := func(i int, l life) history { return history{fmt.Sprint("try-000-", i), []life{l}} }
	return tryOf{
		lines:   byTime(held, taken),
		records: []store.Record{grantOf(1, 10_000, 12_000, 10_000, "try-000-0"), grantOf(2, 12_000, 14_200, 10_000, "try-000-0"), grantOf(3, 14_400, 16_000, 14_400, "try-000-1")},
		of: []history{
			name(0, life{struck: 13_200 * ms, ended: 13_210 * ms, said: []said{
				{boot: 9_000 * ms, Message: "clock sample", Uncertainty: "3ms"}, {boot: 10_000 * ms, Message: "lease allocated", Token: 10_000},
			}}),
			name(1, life{struck: 15_000 * ms, ended: 15_010 * ms, said: []said{
				{boot: 9_000 * ms, Message: "clock sample", Uncertainty: "5ms"}, {boot: 14_450 * ms, Message: "lease allocated", Token: 14_400},
			}}),
		},
	}
}

func (g tryOf) read(how kind) takeover {
	t := takeover{attempt: attempt{how: how}}
	t.read(evidence{
		chronicle: chronicleOf(g.lines), records: g.records, zero: store.FromMillis(0), tolerance: 5 * ms, histories: g.of,
	})
	return t
}

func TestATakeoverIsMeasuredFromTheDeathToTheFirstLine(t *testing.T) {
	got := goodTry().read(killLeasectl)
	if got.verdict.failed() || got.void != "" {
		t.Fatalf("read() says %q, %q, want nothing", got.verdict.wrong, got.void)
	}
	if got.took() != 1300*ms || got.phase != 3200*ms || got.uncertainty != 5*ms {
		t.Errorf("read() = %+v, want 1.3 s at 3.2 s of the slot, ± 5 ms", got)
	}
	if want := []time.Duration{20 * ms}; !slices.Equal(got.starts, want) {
		t.Errorf("starts = %v, want %v: the holder's alone", got.starts, want)
	}
}

func TestATryThatIsNotAsItShouldBeIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		how    kind
		change func(g *tryOf)
		wrong  string
		void   string
	}{
		"nobody takes over": {killLeasectl, func(g *tryOf) { g.lines = by("try-000-0", beats(10_020*ms, 13_200*ms, 10, 10_000)) }, "nobody took over", ""},
		"the holder's command lives on": {killLeasectl, func(g *tryOf) {
			g.lines = byTime(by("try-000-0", beats(10_020*ms, 14_550*ms, 10, 10_000)), by("try-000-1", beats(14_500*ms, 14_600*ms, 20, 14_400)))
		}, "had begun", ""},
		"the holder starts another command": {killLeasectl, func(g *tryOf) {
			g.lines = byTime(g.lines, by("try-000-0", beats(13_900*ms, 14_000*ms, 30, 10_000)))
		}, "after its end", ""},
		"it begins before its window": {killLeasectl, func(g *tryOf) { g.records[2].WindowStart = store.FromMillis(14_550) }, "outside its window", ""},
		"a token that doesn't grow": {killLeasectl, func(g *tryOf) {
			g.records[2].Token = 10_000
		}, "token 10000 is not above", ""},
		"it doesn't end in order": {endLeasectl, func(g *tryOf) { g.of[0].lives[0].how, g.of[0].lives[0].result = endLeasectl, "exit status 1" }, "exit status 1", ""},
		"it is started again":     {killLeasectl, func(g *tryOf) { g.of[0].lives = append(g.of[0].lives, life{}) }, "started again", ""},
		"the standby worked already": {killLeasectl, func(g *tryOf) {
			g.lines = by("try-000-1", g.lines)
			for i := range g.records {
				g.records[i].InstanceID = "try-000-1"
			}
		}, "", "had won before"},
	} {
		t.Run(name, func(t *testing.T) {
			g := goodTry()
			test.change(&g)
			got := g.read(test.how)
			text := strings.Join(got.verdict.wrong, "\n")
			if (test.wrong == "") != (text == "") || !strings.Contains(text, test.wrong) || (test.void == "") != (got.void == "") || !strings.Contains(got.void, test.void) {
				t.Errorf("read() says %q, %q, want %q, %q", got.verdict.wrong, got.void, test.wrong, test.void)
			}
		})
	}
}

// measured is a gauge that has measured next to nothing.
func measured() *gauge { return &gauge{requests: []time.Duration{5 * ms}} }

func triesOf(how kind, tries ...takeover) (found []takeover) {
	for i, t := range tries {
		t.attempt.n, t.attempt.how, t.starts = i, how, []time.Duration{30 * ms}
		found = append(found, t)
	}
	return found
}

func TestTriesAreJudgedByTheBound(t *testing.T) {
	// 2 s, a turn of 222 ms, requests of 5 ms, a start of 30 ms: 2.257 s.
	took := func(phase, d time.Duration) takeover {
		return takeover{attempt: attempt{phase: phase}, struck: 100 * time.Second, first: 100*time.Second + d}
	}
	stalled := func(t takeover, d time.Duration) takeover {
		t.stalled = d
		return t
	}
	unsure := func(t takeover, d time.Duration) takeover {
		t.uncertainty = d
		return t
	}
	for name, test := range map[string]struct {
		try  takeover
		want string
	}{
		"at once":                                 {took(0, 100*ms), inBound},
		"just within":                             {took(3*time.Second, 2250*ms), inBound},
		"just over":                               {took(3*time.Second, 2265*ms), overBound},
		"over by what is uncertain":               {unsure(took(3*time.Second, 2650*ms), 100*ms), inBound},
		"over by more":                            {unsure(took(3*time.Second, 2665*ms), 100*ms), overBound},
		"a lead more at the end of the slot":      {took(9*time.Second, 3250*ms), inBound},
		"where the last window was not long":      {took(7*time.Second, 3250*ms), inBound},
		"a lead more in its midst":                {took(6500*ms, 3250*ms), overBound},
		"more than a lead more":                   {took(9*time.Second, 3265*ms), overBound},
		"over, on a machine that was busy":        {stalled(took(3*time.Second, 2400*ms), 200*ms), tooBusyToTell},
		"over by more than that can explain":      {stalled(took(3*time.Second, 2600*ms), 200*ms), overBound},
		"within, on a machine that was busy":      {stalled(took(3*time.Second, 2000*ms), 200*ms), inBound},
		"over by little, and busy by less":        {stalled(took(3*time.Second, 2280*ms), 40*ms), overBound},
		"the standby had won before":              {takeover{void: "so"}, tooBusyToTell},
		"nobody came":                             {takeover{verdict: verdict{wrong: []string{"so"}}}, overBound},
		"within, and something else was not fine": {func() takeover { t := took(0, ms); t.verdict.wrong = []string{"so"}; return t }(), overBound},
	} {
		t.Run(name, func(t *testing.T) {
			v := &takeoverVerdict{verdict: verdict{settings: settings{tries: 1}}, tries: append(triesOf(killLeasectl, test.try), triesOf(endLeasectl, took(0, ms))...)}
			v.judge(measured())
			if got := v.verdictOf(v.tries[0]); got != test.want {
				t.Errorf("verdictOf() = %s, want %s; the bound is %v", got, test.want, v.bound.of(v.tries[0]))
			}
			if failed := v.failed(); failed != (test.want != inBound) {
				t.Errorf("failed() = %v: %q", failed, v.wrong)
			}
		})
	}
}

func TestTheBoundIsTold(t *testing.T) {
	took := func(phase time.Duration) takeover {
		return takeover{attempt: attempt{phase: phase}, struck: 100 * time.Second, first: 101 * time.Second}
	}
	v := &takeoverVerdict{verdict: verdict{settings: settings{tries: 2}}}
	v.tries = append(triesOf(killLeasectl, took(3*time.Second), took(9*time.Second)), triesOf(endLeasectl, took(0), took(time.Second))...)
	v.judge(measured())
	r := v.report()
	got := map[string]string{}
	for _, f := range r.Figures {
		got[f.What] = f.Value
	}
	for what, want := range map[string]string{
		"the bound, by the moment of the death": "2.2572s to 3.2572s", "their bound": "2.2572s to 2.2572s",
		"which is": "2s failover + 222ms turn + 5ms requests + 30ms start + 4 times the uncertainty of store time, and 1s more towards the end of a slot",
	} {
		if got[what] != want {
			t.Errorf("report(): %s %q, want %q", what, got[what], want)
		}
	}
	if text := r.text.String(); !strings.Contains(text, "2.2572s to 3.2572s") {
		t.Errorf("report() = %s, want the bound in it", text)
	}
}

func TestTriesThatCannotBeToldFailIfTheyAreMany(t *testing.T) {
	good := takeover{struck: time.Second, first: 2 * time.Second}
	v := &takeoverVerdict{verdict: verdict{settings: settings{tries: 20}}}
	for i := range 20 {
		each := good
		if i < 2 {
			each.void = "so"
		}
		v.tries = slices.Concat(v.tries, triesOf(killLeasectl, each), triesOf(endLeasectl, good))
	}
	if v.judge(measured()); v.failed() {
		t.Errorf("2 of 20 can't be told: %q", v.wrong)
	}
	v.tries[4].void = "so"
	if v.judge(measured()); !v.failed() {
		t.Error("3 of 20 can't be told, and it doesn't fail")
	}
	v.tries = v.tries[:10]
	if v.judge(measured()); !v.failed() {
		t.Error("5 of 20 tries were made, and it doesn't fail")
	}
}

func TestAPhaseComesInEachSlot(t *testing.T) {
	zero := store.FromMillis(0)
	for _, c := range []struct{ from, phase, want time.Duration }{
		{0, 0, 0},
		{time.Second, 3 * time.Second, 3 * time.Second},
		{3 * time.Second, time.Second, 11 * time.Second},
		{19 * time.Second, 9500 * ms, 19500 * ms},
	} {
		if got := nextPhase(takeoverSlot, zero, c.from, c.phase); got != c.want {
			t.Errorf("nextPhase(%v, %v) = %v, want %v", c.from, c.phase, got, c.want)
		}
	}
}
