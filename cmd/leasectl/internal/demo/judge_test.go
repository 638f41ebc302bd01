package demo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// play is a demo that went well, for tests to spoil: six slots of 3 s from recordtest.Noon,
// the second cut short.
type play struct {
	plan  plan
	fell  work
	lines []Line
	late  int
	tail  []store.Record
}

func goodPlay() *play {
	p := &play{plan: plan{first: recordtest.Noon, interval: 3 * time.Second, slots: 6, kill: 1, back: 3}}
	for i, holder := range []string{"north", "north", "east", "east", "north", "north"} {
		begin, end := 20*time.Millisecond, 2940*time.Millisecond
		if i == 1 {
			end = 1500 * time.Millisecond
		}
		p.add(holder, i, begin, end, i != 1)
	}
	p.fell = work{worker: "north", token: p.lines[2].Token}
	return p
}

// add adds a work from begin to end after the start of slot i, and its grant.
func (p *play) add(holder string, i int, begin, end time.Duration, finished bool) {
	slot := p.plan.start(i)
	token := slot.UnixMilli()
	pid := 100 + len(p.tail)
	at := slot.Sub(recordtest.Noon)
	line := Line{Event: LineBegin, Worker: holder, PID: pid, Token: token, Slot: slot, Boot: at + begin}
	p.lines = append(p.lines, line)
	line.Event, line.Boot = LineBeat, at+end
	if finished {
		line.Event = LineEnd
	}
	p.lines = append(p.lines, line)
	p.tail = append([]store.Record{{
		WorkerType: workerType, Seq: int64(len(p.tail) + 1), Kind: store.KindGrant, InstanceID: holder, Claim: fmt.Sprint("claim", i), Token: token,
		SlotStart: slot, SlotEnd: slot.Add(p.plan.interval), WindowStart: slot, WindowEnd: slot.Add(p.plan.interval), Schedule: "every 3s",
	}}, p.tail...)
}

func (p *play) judge() verdict {
	return judge(p.plan, p.fell, p.lines, p.late, p.tail, recordtest.Noon)
}

// texts are what is wrong by the verdict.
func (v verdict) texts() (wrong []string) {
	for _, err := range v.wrong {
		wrong = append(wrong, strings.TrimPrefix(err.Error(), "demo: "))
	}
	return wrong
}

func TestAGoodPlayIsJudgedGood(t *testing.T) {
	v := goodPlay().judge()
	if len(v.wrong) != 0 {
		t.Errorf("judge() = %v, want nothing wrong", v.wrong)
	}
	wantGaps := []time.Duration{80 * time.Millisecond, 80 * time.Millisecond, 80 * time.Millisecond, 80 * time.Millisecond}
	if !slices.Equal(v.gaps, wantGaps) || v.median() != 80*time.Millisecond {
		t.Errorf("judge() = gaps %v, median %v, want %v: not that after the slot that was cut short", v.gaps, v.median(), wantGaps)
	}
	if diff := cmp.Diff(map[string]int{"north": 4, "east": 2}, v.holders); diff != "" {
		t.Errorf("judge() = holders (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"12:00:03.000Z, north after 1.48s"}, v.cut); diff != "" {
		t.Errorf("judge() = cut short (-want +got):\n%s", diff)
	}
}

// What only takes long, or comes late, is shown and not judged.
func TestABusyMachineIsNoMistake(t *testing.T) {
	for name, spoil := range map[string]func(p *play){
		"a line after its window":                  func(p *play) { p.lines[5].Boot += 68 * time.Millisecond },
		"a line long after its window":             func(p *play) { p.lines[11].Boot += time.Minute },
		"late lines that the fence refused":        func(p *play) { p.late = 3 },
		"a missed slot":                            func(p *play) { p.lines = slices.Delete(p.lines, 8, 10) },
		"a missed slot after that of the kill":     func(p *play) { p.lines = slices.Delete(p.lines, 4, 6) },
		"a work that ends early":                   func(p *play) { p.lines[7].Boot -= 2 * time.Second },
		"work up to the end of the cut slot":       func(p *play) { p.lines[3].Boot += 1400 * time.Millisecond },
		"a work that is started again in its slot": func(p *play) { p.lines[7].PID++ },
		"a killed worker that doesn't come back": func(p *play) {
			for i := 8; i < len(p.lines); i++ {
				p.lines[i].Worker = "east"
			}
			p.tail[0].InstanceID, p.tail[1].InstanceID = "east", "east"
		},
		"another than the favourite killed": func(p *play) {
			p.lines[2].Worker, p.lines[3].Worker, p.fell.worker = "south", "south", "south"
			p.tail[4].InstanceID = "south"
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := goodPlay()
			spoil(p)
			if got := p.judge(); got.wrong != nil || got.successor != "east" || got.late != p.late {
				t.Errorf("judge() = %q, %q took over, %d late lines; want nothing wrong, east, %d", got.texts(), got.successor, got.late, p.late)
			}
		})
	}
}

func TestWhateverIsWrongIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(p *play)
		want  []string
	}{
		"a late line that no fence has refused": {
			spoil: func(p *play) { p.lines[3], p.lines[4] = p.lines[4], p.lines[3] },
			want: []string{`2 times two worked at once: ["north (token 1772452803000) after east (token 1772452806000)" ` +
				`"east (token 1772452806000) after north (token 1772452803000)"]`},
		},
		"one within another": {
			spoil: func(p *play) {
				p.lines = slices.Insert(p.lines, 9, Line{Event: LineBegin, Worker: "south", PID: 7, Token: 9, Slot: p.plan.start(4)})
			},
			want: []string{
				`2 times two worked at once: ["south (token 9) after north (token 1772452812000)" "north (token 1772452812000) after south (token 9)"]`,
				"ledger: south worked with token 9, which it was not granted",
			},
		},
		"two at once with one token": {
			spoil: func(p *play) {
				p.lines = slices.Insert(p.lines, 9, Line{Event: LineBegin, Worker: "south", PID: 7, Token: p.lines[8].Token, Slot: p.plan.start(4)})
			},
			want: []string{
				`1 times two worked at once: ["north (token 1772452812000) after south (token 1772452812000)"]`,
				"ledger: south worked with token 1772452812000, which it was not granted",
			},
		},
		"work without a grant": {
			spoil: func(p *play) { p.tail[0].InstanceID = "east" },
			want:  []string{"ledger: north worked with token 1772452815000, which it was not granted"},
		},
		"nobody took over": {
			spoil: func(p *play) { p.lines = p.lines[:4] },
			want:  []string{"nobody took over from north"},
		},
		"nobody but the killed one when it was back": {
			spoil: func(p *play) { p.lines = slices.Delete(p.lines, 4, 8) },
			want:  []string{"nobody took over from north"},
		},
		"tokens that don't grow": {
			spoil: func(p *play) { p.tail[0].Token, p.lines = 1, p.lines[:10] },
			want:  []string{"ledger: record 6: token-not-above: Workers can't obey the record: its token 1 is not above that of seq 5, 1772452812000."},
		},
		"windows that overlap": {
			spoil: func(p *play) { p.tail[1].WindowEnd = p.tail[1].WindowEnd.Add(time.Millisecond) },
			want:  []string{"ledger: record 6: overlapping-window: Workers can't obey the record: its window starts at 2026-03-02T12:00:15.000Z, before that of seq 5 ends at 2026-03-02T12:00:15.001Z."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := goodPlay()
			test.spoil(p)
			if diff := cmp.Diff(test.want, p.judge().texts()); diff != "" {
				t.Errorf("judge() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThePlanCountsFromABoundaryWhoseClaimsAreNotOpen(t *testing.T) {
	f := Options{Slots: 9, Interval: 3 * time.Second}
	for after, want := range map[time.Duration]time.Duration{
		0: 3 * time.Second, 2 * time.Second: 3 * time.Second, 2200 * time.Millisecond: 6 * time.Second, 2999 * time.Millisecond: 6 * time.Second,
	} {
		if got := newPlan(f, recordtest.Noon.Add(after)).first; !got.Equal(recordtest.Noon.Add(want)) {
			t.Errorf("newPlan(%v after recordtest.Noon).first = %v, want %v after recordtest.Noon", after, got, want)
		}
	}
	for n := 6; n <= 1000; n++ {
		p := newPlan(Options{Slots: n, Interval: 3 * time.Second}, recordtest.Noon)
		if p.kill < 1 || p.back < p.kill+2 || p.back > n-2 {
			t.Errorf("newPlan(%d slots) kills in %d and returns in %d", n, p.kill, p.back)
		}
	}
}
