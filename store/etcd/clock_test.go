package etcd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
)

func TestTheTimeIsTheDateOfAMembersReply(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: fresh(etcdpeer.Shared(t)), ServerSkew: time.Millisecond})
	for range 20 {
		sent := time.Now()
		s, err := l.Now(within(t))
		must(t, "Now()", err)
		// The member's clock is this machine's.
		if s.Time.After(time.Now()) || s.Time.Add(s.Granularity).Before(sent) || s.MaxAge != 0 || s.Skew != time.Millisecond || s.Server != l.c.a.hosts[0] || s.Clock != "" {
			t.Errorf("Now() = %+v, which doesn't hold the time between %v and now", s, sent)
		}
		time.Sleep(57 * time.Millisecond)
	}
}

func TestAReplyWithoutATimeIsAnError(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]http.HandlerFunc{
		"no date":      func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil },
		"a bad date":   func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "yesterday") },
		"a cache":      func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Age", "3") },
		"not found":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"a redirect":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"a hung reply": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			poor := httptest.NewServer(reply)
			defer poor.Close()
			l := opened(t, Options{URI: "etcd://" + strings.TrimPrefix(poor.URL, "http://")})
			if s, err := l.c.Now(documenttest.Within(t, 300*time.Millisecond)); err == nil || !s.IsZero() {
				t.Errorf("Now() = %+v, %v, want an error", s, err)
			}
			sound := httptest.NewServer(http.NotFoundHandler())
			sound.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			defer sound.Close()
			l = opened(t, Options{URI: "etcd://" + strings.TrimPrefix(poor.URL, "http://") + "," + strings.TrimPrefix(sound.URL, "http://")})
			for range 2 {
				if s, err := l.c.Now(within(t)); err != nil || "http://"+s.Server != sound.URL {
					t.Errorf("Now() = %+v, %v, want the time of the other endpoint", s, err)
				}
			}
		})
	}
}

// dated serves dates that are ahead.
func dated(t *testing.T, ahead time.Duration) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestClocksThatAreApartAreFound(t *testing.T) {
	t.Parallel()
	for ahead, bounds := range map[time.Duration][2]time.Duration{0: {0, 0}, 3 * time.Second: {2 * time.Second, 3 * time.Second}, -700 * time.Millisecond: {time.Millisecond, 700 * time.Millisecond}} {
		l := opened(t, Options{URI: "etcd://" + dated(t, 0) + "," + dated(t, ahead)})
		got, err := l.c.apart(within(t))
		if err != nil || got.Least < bounds[0] || got.Least > bounds[1] || got.Most < got.Least || got.Most < ahead.Abs() || len(got.silent) > 0 {
			t.Errorf("apart() of clocks that are %v apart = %+v, %v, want %v", ahead, got, err, bounds)
		}
	}
}

// stepped is a clock whose time of day is set back half a second after it began.
type stepped struct {
	clock.Clock

	began time.Time
}

func (s stepped) Now() time.Time {
	if now := s.Clock.Now(); s.Clock.Since(s.began) < 500*time.Millisecond {
		return now
	}
	return s.Clock.Now().Round(0).Add(-10 * time.Second)
}

// Whoever sets the worker's own time of day moves no member's clock.
func TestTheLocalTimeOfDayMovesNoClock(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: "etcd://" + dated(t, 0) + "," + dated(t, 0)})
	l.c.clock = stepped{clock.New(), time.Now()}
	got, err := l.c.apart(within(t))
	if err != nil || got.Exceeds(l.c.skew) != "" || got.Most > time.Second {
		t.Errorf("apart() while the time of day is set = %+v, %v, want clocks that agree", got, err)
	}
}

// Two workers may get their time from two members.
func TestStampsAllowForMembersWhoseClocksAreApart(t *testing.T) {
	t.Parallel()
	first, second := dated(t, 0), dated(t, 3*time.Second)
	for _, hosts := range []string{first + "," + second, second + "," + first} {
		l := opened(t, Options{URI: "etcd://" + hosts})
		s, err := l.c.Now(within(t))
		if err != nil || s.Skew < 3*time.Second || s.Skew > 5*time.Second {
			t.Errorf("Now() of members that are 3 s apart = %+v, %v, want a skew of some 3 s", s, err)
		}
		if w := l.Warning(); !strings.Contains(w, "the clock of "+second+" is ahead of that of "+first) {
			t.Errorf("Warning() = %q, want the one that is ahead", w)
		}
	}
	// One that is gone is taken to be where it was.
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(3*time.Second).UTC().Format(http.TimeFormat))
	}))
	l := opened(t, Options{URI: "etcd://" + first + "," + strings.TrimPrefix(gone.URL, "http://")})
	for range 2 {
		if s, err := l.c.Now(within(t)); err != nil || s.Skew < 3*time.Second {
			t.Errorf("Now() = %+v, %v, want a skew of some 3 s, also without the member", s, err)
		}
		gone.Close()
		l.c.distances.at = time.Time{}
		must(t, "compare()", l.c.compare(within(t)))
		l.c.distances.looks.Wait()
	}
	// People who look don't wait for it, and neither does who names one endpoint.
	for _, l := range []*Ledger{opened(t, Options{URI: "etcd://" + first}), opened(t, Options{URI: "etcd://" + first + "," + second})} {
		l.c.readOnly = len(l.c.a.hosts) > 1
		began := time.Now()
		if s, err := l.c.Now(within(t)); err != nil || s.Skew != DefaultServerSkew || time.Since(began) > 900*time.Millisecond {
			t.Errorf("Now() = %+v, %v after %v, want the skew that is assumed, at once", s, err, time.Since(began))
		}
	}
}
