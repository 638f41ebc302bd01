package guard

import (
	"testing"
	"time"
)

func TestWatchDecides(t *testing.T) {
	const s = time.Second
	// Deadline 100 s, grace 10 s unless said otherwise.
	tests := []struct {
		name   string
		grace  time.Duration
		do     func(w *watch)
		at     time.Duration
		want   verdict
		reason Reason
		next   time.Duration
	}{
		{"runs before the grace", 10 * s, nil, 90*s - 1, letRun, 0, 90 * s},
		{"is told to end when the grace starts", 10 * s, nil, 90 * s, terminate, DeadlineReached, 100 * s},
		{"is told to end until the deadline", 10 * s, nil, 100*s - 1, terminate, DeadlineReached, 100 * s},
		{"is killed at the deadline", 10 * s, nil, 100 * s, kill, DeadlineReached, 100 * s},
		{"is killed without SIGTERM if there is no grace", 0, nil, 100 * s, kill, DeadlineReached, 100 * s},
		{"runs to the deadline if there is no grace", 0, nil, 100*s - 1, letRun, 0, 100 * s},
		{"has the grace after a stop", 10 * s, func(w *watch) { w.stop(50*s, 0) }, 60*s - 1, terminate, Stopped, 60 * s},
		{"is killed when the grace after a stop is over", 10 * s, func(w *watch) { w.stop(50*s, 0) }, 60 * s, kill, Stopped, 60 * s},
		{"is killed at once by a stop without grace", 0, func(w *watch) { w.stop(50*s, 0) }, 50 * s, kill, Stopped, 50 * s},
		{"a second stop doesn't prolong the grace", 10 * s, func(w *watch) { w.stop(50*s, 0); w.stop(55*s, 0) }, 60 * s, kill, Stopped, 60 * s},
		{"a stop with an earlier deadline shortens the grace", 10 * s, func(w *watch) { w.stop(50*s, 53*s) }, 53 * s, kill, Stopped, 53 * s},
		{"a later stop may shorten the grace", 10 * s, func(w *watch) { w.stop(50*s, 0); w.stop(51*s, 53*s) }, 53 * s, kill, Stopped, 53 * s},
		{"a stop with a later deadline doesn't lengthen it", 10 * s, func(w *watch) { w.stop(85*s, 0); w.stop(86*s, 200*s) }, 95 * s, kill, Stopped, 95 * s},
		{"a stop late in the grace keeps the deadline", 10 * s, func(w *watch) { w.at(95 * s); w.stop(96*s, 0) }, 100 * s, kill, DeadlineReached, 100 * s},
		{"an extension moves grace and deadline", 10 * s, func(w *watch) { w.extend(50*s, 200*s, 10*s) }, 190*s - 1, letRun, 0, 190 * s},
		{"an extension may give less notice", 10 * s, func(w *watch) { w.extend(50*s, 200*s, 2*s) }, 198*s - 1, letRun, 0, 198 * s},
		{"less notice is no less grace after a stop", 10 * s, func(w *watch) { w.extend(50*s, 200*s, 2*s); w.stop(60*s, 0) }, 70*s - 1, terminate, Stopped, 70 * s},
		{"each extension moves the deadline", 10 * s, func(w *watch) { w.extend(50*s, 120*s, 2*s); w.extend(110*s, 150*s, 2*s) }, 150 * s, kill, DeadlineReached, 150 * s},
		{"an extension that comes twice changes nothing", 10 * s, func(w *watch) { w.extend(50*s, 120*s, 2*s); w.extend(60*s, 120*s, 10*s) }, 118*s - 1, letRun, 0, 118 * s},
		{"an older extension changes nothing", 10 * s, func(w *watch) { w.extend(50*s, 150*s, 2*s); w.extend(60*s, 120*s, 10*s) }, 150 * s, kill, DeadlineReached, 150 * s},
		{"an extended command is killed at the new deadline", 10 * s, func(w *watch) { w.extend(50*s, 200*s, 10*s) }, 200 * s, kill, DeadlineReached, 200 * s},
		{"an extension can't shorten", 10 * s, func(w *watch) { w.extend(50*s, 60*s, 1*s) }, 90*s - 1, letRun, 0, 90 * s},
		{"an extension in the grace comes too late", 10 * s, func(w *watch) { w.extend(90*s, 200*s, 10*s) }, 100 * s, kill, DeadlineReached, 100 * s},
		{"an extension after a stop comes too late", 10 * s, func(w *watch) { w.stop(50*s, 0); w.extend(51*s, 200*s, 10*s) }, 60 * s, kill, Stopped, 60 * s},
		{"an extension after a suspend past the deadline comes too late", 10 * s, func(w *watch) { w.extend(150*s, 200*s, 10*s) }, 150 * s, kill, DeadlineReached, 100 * s},
		{"an extension that leaves less than its notice starts the grace at once", 10 * s, func(w *watch) { w.extend(89*s, 101*s, 10*s) }, 91 * s, terminate, DeadlineReached, 101 * s},
		{"a grace longer than the time left starts at once", 200 * s, nil, 1 * s, terminate, DeadlineReached, 100 * s},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := watch{deadline: 100 * s, notice: tt.grace, grace: tt.grace}
			if tt.do != nil {
				tt.do(&w)
			}
			if got := w.at(tt.at); got != tt.want || w.reason != tt.reason {
				t.Errorf("at(%v) = %v because %v, want %v because %v", tt.at, got, w.reason, tt.want, tt.reason)
			}
			if got := w.next(); got != tt.next {
				t.Errorf("next() = %v, want %v", got, tt.next)
			}
		})
	}
}

func TestStatusReadsLikeAShell(t *testing.T) {
	tests := []struct {
		status Status
		code   int
		text   string
	}{
		{Status{Code: 0, Reason: Exited}, 0, "exit code 0, ended by itself"},
		{Status{Code: 7, Reason: Stopped}, 7, "exit code 7, stopped on request"},
		{Status{Code: -1, Signal: 9, Reason: DeadlineReached}, 137, "signal 9 (killed), stopped at the deadline"},
	}
	for _, tt := range tests {
		if got := tt.status.ExitCode(); got != tt.code {
			t.Errorf("%+v.ExitCode() = %d, want %d", tt.status, got, tt.code)
		}
		if got := tt.status.String(); got != tt.text {
			t.Errorf("%+v.String() = %q, want %q", tt.status, got, tt.text)
		}
	}
}
