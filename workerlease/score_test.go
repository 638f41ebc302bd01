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
	"time"

	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
)

// told are scores that are told one after the other.
func told(scores ...float64) func(context.Context) (float64, error) {
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
		{"no score", &workerlease.Score{}, []float64{math.NaN(), -0.1, 1.1, math.Inf(1), 0.85, 0.9}, "-----+"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.score.Of = told(tc.scores...)
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
		{&workerlease.Score{Of: told(0.5)}, "health score 0.50 is below 0.80"},
		{&workerlease.Score{Of: told(7)}, "health score 7: must be 0 … 1"},
		{&workerlease.Score{Of: func(context.Context) (float64, error) { return 1, down }}, "no route to the queue"},
		{&workerlease.Score{}, "Score.Of is not set"},
		{&workerlease.Score{Of: told(1), Minimum: 80}, "Score.Minimum is 80: must be more than 0, and 1 at most"},
		{&workerlease.Score{Of: told(1), Minimum: 0.5, Recovery: 0.4}, "Score.Recovery is 0.4: must be Score.Minimum (0.5) … 1"},
		{&workerlease.Score{Of: told(1), Minimum: math.NaN()}, "Score.Minimum is NaN: must be more than 0, and 1 at most"},
	} {
		if err := tc.score.Eligible(t.Context()); err == nil || err.Error() != tc.want {
			t.Errorf("Eligible() = %v, want %q", err, tc.want)
		}
	}
	s := &workerlease.Score{Of: told(0.5, 0.85)}
	_ = s.Eligible(t.Context())
	if err := s.Eligible(t.Context()); err == nil || !strings.HasSuffix(err.Error(), "0.85 is not back at 0.90") {
		t.Errorf("Eligible() = %v, want that 0.85 is not enough after 0.5", err)
	}
}

// The lease changes hands no more often than the hysteresis says, however often the health does.
func TestHealthThatFlapsDoesNotFlapTheLease(t *testing.T) {
	for _, tc := range []struct {
		low, high float64
		times     int // of becoming ineligible in an hour
	}{
		{0.81, 0.99, 0}, // never below the minimum
		{0.5, 0.89, 1},  // never back
		{0.79, 0.9, 20}, // as often as three minutes pass in which it leads
	} {
		bubble(t, fmt.Sprint(tc.low, " ", tc.high), func(t *testing.T) {
			ledger := memory.New(memory.Options{})
			var score atomic.Value
			score.Store(1.0)
			health := &workerlease.Score{Of: func(context.Context) (float64, error) { return score.Load().(float64), nil }}
			o, p := named("a", 0), named("b", 1)
			o.LeaseInterval, o.Continuous, o.Eligible, o.EligibleEvery = 10*time.Minute, true, health.Eligible, time.Second
			p.LeaseInterval, p.Continuous = 10*time.Minute, true
			a := start(t, setup{ledger: ledger, Options: o})
			start(t, setup{ledger: ledger, Options: p})
			at(11 * time.Minute)
			for range 20 {
				for range 60 { // Up and down, and then up for a minute and a half.
					score.Store(tc.low)
					time.Sleep(750 * time.Millisecond)
					score.Store((tc.low + tc.high) / 2)
					time.Sleep(750 * time.Millisecond)
				}
				score.Store(tc.high)
				time.Sleep(90 * time.Second)
			}
			if n := len(observed[workerlease.BecameIneligible](a)); n > tc.times || n < (tc.times+1)/2 {
				t.Errorf("%d times not eligible, want %d at most, and not much less", n, tc.times)
			}
			if n, most := len(a.history()), 1+tc.times; n > most {
				t.Errorf("%d leases in an hour, want %d at most", n, most)
			}
		})
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

// A call that ends in a panic, or too late, made the worker ineligible: it needs the higher score, too.
func TestAScoreThatIsNotToldCountsForHysteresis(t *testing.T) {
	for name, second := range map[string]func(cancel func()) (float64, error){
		"panic": func(func()) (float64, error) { panic("no") },
		"late":  func(cancel func()) (float64, error) { cancel(); return 0.85, nil },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			score := func() (float64, error) { return 0.85, nil }
			s := &workerlease.Score{Of: func(context.Context) (float64, error) { return score() }}
			if err := s.Eligible(ctx); err != nil {
				t.Fatal(err)
			}
			first := score
			score = func() (float64, error) { return second(cancel) }
			func() {
				defer func() { _ = recover() }()
				if err := s.Eligible(ctx); err == nil {
					t.Error("nil of a call that came too late")
				}
			}()
			score = first
			if err := s.Eligible(t.Context()); err == nil {
				t.Error("0.85 made it eligible again, want it to need 0.9")
			}
		})
	}
}
