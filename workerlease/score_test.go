package workerlease_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

// scored are scores that are told one after the other.
func scored(scores ...float64) func(context.Context) (float64, error) {
	n := -1
	return func(context.Context) (float64, error) { n++; return scores[n], nil }
}

func TestAScoreDecidesWithHysteresis(t *testing.T) {
	for _, tc := range []struct {
		name   string
		score  *workerlease.Score
		scores []float64
		want   string // + for each eligible
	}{
		{"default", &workerlease.Score{}, []float64{0.8, 0.79, 0.8, 0.89, 0.9, 0.8, 1, 0, 1}, "+---+++-+"},
		{"none", &workerlease.Score{Minimum: 0.5, Recovery: 0.5}, []float64{0.5, 0.4, 0.5, 0.4}, "+-+-"},
		{"wide", &workerlease.Score{Minimum: 0.2, Recovery: 1}, []float64{0.2, 0.1, 0.99, 1, 0.2}, "+--++"},
		{"no score", &workerlease.Score{}, []float64{math.NaN(), -0.1, 1.1, math.Inf(1), 0.85, 0.9}, "----++"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.score.Of = scored(tc.scores...)
			got := ""
			for range tc.scores {
				if tc.score.Eligible(t.Context()) == nil {
					got += "+"
				} else {
					got += "-"
				}
			}
			if got != tc.want {
				t.Errorf("scores %v: %s, want %s", tc.scores, got, tc.want)
			}
		})
	}
}

func TestAScoreSaysWhyAWorkerIsNotEligible(t *testing.T) {
	down := errors.New("no route to the queue")
	for _, tc := range []struct {
		score *workerlease.Score
		want  string
	}{
		{&workerlease.Score{Of: scored(0.5)}, "health score 0.50 is below 0.80"},
		{&workerlease.Score{Of: scored(7)}, "health score 7: must be 0 … 1"},
		{&workerlease.Score{Of: func(context.Context) (float64, error) { return 1, down }}, "no route to the queue"},
		{&workerlease.Score{}, "Score.Of is not set"},
		{&workerlease.Score{Of: scored(1), Minimum: 80}, "Score.Minimum is 80: must be more than 0, and 1 at most"},
		{&workerlease.Score{Of: scored(1), Minimum: 0.5, Recovery: 0.4}, "Score.Recovery is 0.4: must be Score.Minimum (0.5) … 1"},
		{&workerlease.Score{Of: scored(1), Minimum: math.NaN()}, "Score.Minimum is NaN: must be more than 0, and 1 at most"},
	} {
		if err := tc.score.Eligible(t.Context()); err == nil || err.Error() != tc.want {
			t.Errorf("Eligible() = %v, want %q", err, tc.want)
		}
	}
	s := &workerlease.Score{Of: scored(0.5, 0.85)}
	_ = s.Eligible(t.Context())
	if err := s.Eligible(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "0.85 is not back at 0.90") {
		t.Errorf("Eligible() = %v, want that 0.85 is not enough after 0.5", err)
	}
}

// A worker whose service says that it is not ready leads nothing.
func ExampleOptions_eligible() {
	probe := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:8080/readyz", http.NoBody)
		if err != nil {
			return err
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		if reply.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz says %s", reply.Status)
		}
		return nil
	}
	_ = workerlease.Options{
		WorkerType: "mail", LeaseInterval: time.Minute, FailoverWithin: 10 * time.Second,
		Eligible: probe, EligibleEvery: 2 * time.Second,
	}
}

// A call that fails, ends in a panic or comes too late makes the worker ineligible, and has measured nothing: what decides next is
// whether the newest score was too low.
func TestAScoreThatIsNotToldIsNoLowScore(t *testing.T) {
	for name, second := range map[string]func(cancel func()) (float64, error){
		"error": func(func()) (float64, error) { return 0, errors.New("connection reset") },
		"panic": func(func()) (float64, error) { panic("no") },
		"late":  func(cancel func()) (float64, error) { cancel(); return 0.85, nil },
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []float64{0.85, 0.5} {
				ctx, cancel := context.WithCancel(t.Context())
				score := func() (float64, error) { return before, nil }
				s := &workerlease.Score{Of: func(context.Context) (float64, error) { return score() }}
				_ = s.Eligible(ctx)
				score = func() (float64, error) { return second(cancel) }
				func() {
					defer func() { _ = recover() }()
					if err := s.Eligible(ctx); err == nil {
						t.Error("nil of a call that told no score")
					}
				}()
				score = func() (float64, error) { return 0.85, nil }
				if err := s.Eligible(t.Context()); (err == nil) != (before == 0.85) {
					t.Errorf("0.85 after %v: %v", before, err)
				}
			}
		})
	}
}

// One blip of what the health of all workers is asked of keeps nobody from leading after it, and the reason that is
// shown is the newest.
func TestABlipOfTheHealthCheckCostsOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		var why atomic.Value
		why.Store("")
		var workers []*worker
		for _, name := range []string{"a", "b", "c"} {
			health := &workerlease.Score{Of: func(context.Context) (float64, error) {
				if text := why.Load().(string); text != "" {
					return 0, errors.New(text)
				}
				return 0.85, nil
			}}
			o := named(name, 0)
			o.Eligible = health.Eligible
			workers = append(workers, start(t, setup{ledger: ledger.Handle(), Options: o}))
		}
		at(12 * time.Minute)
		for i, text := range []string{"connection reset", "no route"} {
			why.Store(text)
			at(15*time.Minute + time.Duration(i)*3*time.Minute)
			for _, w := range workers {
				if s := w.Status(); s.Ineligible != text {
					t.Errorf("not eligible: %q, want %q", s.Ineligible, text)
				}
			}
		}
		why.Store("")
		at(time.Hour + time.Minute)
		led := 0
		for _, w := range workers {
			for _, start := range w.starts() {
				if start >= 20*time.Minute {
					led++
				}
			}
			if n := len(observed[event.BecameIneligible](w)); n != 1 {
				t.Errorf("BecameIneligible %d times, want once", n)
			}
		}
		if led != 9 {
			t.Errorf("%d slots were led from 00:20 to 01:00, want all 9", led)
		}
	})
}
