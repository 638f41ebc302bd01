package workerlease_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
)

// vague is a ledger whose servers' clocks may be apart by so much, for all that is known;
// and that which answers is, by off.
func vague(l store.Ledger, skew, off time.Duration) store.Ledger {
	return &hooked{Ledger: l, stamp: func(s *store.Stamp, _ time.Time) { s.Time, s.Skew = s.Time.Add(off), skew }}
}

func TestWindowsTooShortForTheUncertaintyAreReportedOnce(t *testing.T) {
	const ms = time.Millisecond
	for name, test := range map[string]struct {
		slot, d, skew time.Duration
		works         bool
		text          []string // nil: nothing is reported
	}{
		"parts of the least length":   {time.Second, 80 * ms, 100 * ms, false, []string{"FailoverWithin is 80ms", "uncertain by ±100ms", "8 × that and 4 × Margin (848ms)"}},
		"parts of the uncertainty":    {time.Second, 200 * ms, 100 * ms, false, []string{"FailoverWithin is 200ms", "uncertain by ±100ms", "8 × that and 4 × Margin (848ms)"}},
		"parts for work, not for all": {time.Second, 500 * ms, 100 * ms, true, []string{"FailoverWithin is 500ms", "(848ms)"}},
		"parts that do":               {5 * time.Second, 850 * ms, 80 * ms, true, nil},
		"slots":                       {time.Second, 0, 600 * ms, false, []string{"the shortest slot is 1s", "uncertain by ±600ms", "2 × that and Margin (1.212s)"}},
		"slots that do":               {time.Second, 0, 400 * ms, true, nil},
	} {
		bubble(t, name, func(t *testing.T) {
			o := parted("me", 0, test.d)
			o.LeaseInterval = test.slot
			w := start(t, setup{ledger: vague(memory.New(memory.Options{}), test.skew, 0), Options: o})
			at(time.Minute)
			if n := len(w.history()); (n > 0) != test.works {
				t.Errorf("%d leases, want some: %v", n, test.works)
			}
			e := observed[workerlease.TooUncertain](w)
			if test.text == nil {
				if len(e) != 0 || w.Status().LastError != nil {
					t.Errorf("observed %v, LastError %v, want nothing", e, w.Status().LastError)
				}
				return
			}
			if len(e) != 1 || len(w.errs) != 1 || w.errs[0] != e[0].Err || w.Status().LastError != e[0].Err {
				t.Fatalf("observed %v, Callbacks.Error of %v, LastError %v, want the same once", e, w.errs, w.Status().LastError)
			}
			if d := e[0].Uncertainty - test.skew; d < 0 || d > 5*ms {
				t.Errorf("Uncertainty = %v, want %v", e[0].Uncertainty, test.skew)
			}
			for _, want := range test.text {
				if text := e[0].Err.Error(); !strings.Contains(text, want) || strings.Contains(text, "\n") {
					t.Errorf("the error has no %q: %s", want, text)
				}
			}
		})
	}
}

func TestOneAnswerThatComesLateIsNoUncertainty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := faulty(t, once(faultstore.OpNow, 1, faultstore.Fault{After: 4 * time.Second}))
		w := start(t, setup{ledger: ledger, Options: parted("me", 0, 10*time.Second)})
		at(11 * time.Minute)
		if s := observed[workerlease.ClockSample](w)[0]; s.Uncertainty < 2*time.Second {
			t.Fatalf("the first sample's uncertainty is %v, want 2 s", s.Uncertainty)
		}
		if e := observed[workerlease.TooUncertain](w); len(e) != 0 {
			t.Errorf("observed %v", e[0].Err)
		}
	})
}

// The rule that TooUncertain reports is enough.
func TestAStandbyTakesOverWithTheLeastFailoverWithinForTheUncertainty(t *testing.T) {
	const d, skew, slot = 900 * time.Millisecond, 100 * time.Millisecond, 10 * time.Second
	for dies := slot + 100*time.Millisecond; dies < 2*slot-3*d; dies += 470 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			inner, link := cut(t)
			o := parted("first", 0, d)
			o.LeaseInterval, o.Margin = slot, 10*time.Millisecond
			first := start(t, setup{ledger: vague(link, skew, 0), Options: o})
			o.InstanceID, o.Priority = "second", 1
			second := start(t, setup{ledger: vague(inner.Handle(), skew, 0), Options: o})
			at(dies)
			link.Break(faultstore.Down())
			at(2*slot + slot/2)
			const turn = 2 * (skew + 10*time.Millisecond)
			if u := second.turn(t, 0); u.allocated > dies+d+4*skew+turn {
				t.Errorf("dead at %v: allocated at %v, want by %v", dies, u.allocated, dies+d+4*skew+turn)
			}
			if e := observed[workerlease.TooUncertain](second); len(e) != 0 {
				t.Errorf("observed %v", e[0].Err)
			}
			apart(t, first, second)
		})
	}
}
