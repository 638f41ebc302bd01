package etcd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
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

// members are what endpoints reply, without sockets: nil is one that is gone.
type members map[string]http.HandlerFunc

func (m members) RoundTrip(r *http.Request) (*http.Response, error) {
	member, reply := m[r.URL.Host], httptest.NewRecorder()
	if member == nil {
		return nil, syscall.ECONNREFUSED
	}
	member(reply, r)
	return reply.Result(), nil
}

// dated is a cluster in a bubble, whose members, m0, m1 and so on, have clocks that are ahead.
func dated(t *testing.T, ahead ...time.Duration) (*cluster, members) {
	t.Helper()
	m := members{}
	c := &cluster{clock: clock.New(), life: t.Context(), web: &http.Client{Transport: m}, skew: DefaultServerSkew}
	for i, by := range ahead {
		host := fmt.Sprint("m", i)
		c.a.hosts = append(c.a.hosts, host)
		m[host] = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
		}
	}
	return c, m
}

func TestClocksThatAreApartAreFound(t *testing.T) {
	for _, ahead := range []time.Duration{0, 3 * time.Second, -700 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := dated(t, 0, ahead)
			for range 10 { // at any moment of a second
				got, err := c.apart(t.Context())
				by := ahead.Abs() // within the distance of two looks at each clock
				if err != nil || got.Least < max(0, by-2*clockPause) || got.Least > by || got.Most < by || got.Most > by+2*clockPause || len(got.silent) > 0 {
					t.Errorf("apart() of clocks that are %v apart = %+v, %v", ahead, got, err)
				}
				time.Sleep(37 * time.Millisecond)
			}
		})
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
	synctest.Test(t, func(t *testing.T) {
		c, _ := dated(t, 0, 0)
		c.clock = stepped{clock.New(), time.Now()}
		got, err := c.apart(t.Context())
		if err != nil || got.Exceeds(c.skew) != "" || got.Most > 200*time.Millisecond {
			t.Errorf("apart() while the time of day is set = %+v, %v, want clocks that agree", got, err)
		}
	})
}

// Two workers may get their time from two members.
func TestStampsAllowForMembersWhoseClocksAreApart(t *testing.T) {
	for _, ahead := range [][]time.Duration{{0, 3 * time.Second}, {3 * time.Second, 0}} {
		synctest.Test(t, func(t *testing.T) {
			c, m := dated(t, ahead...)
			first, second := "m0", "m1"
			if ahead[0] > 0 {
				first, second = second, first
			}
			seen := func(when string) {
				t.Helper()
				if s, err := c.Now(t.Context()); err != nil || s.Skew < 3*time.Second || s.Skew > 3300*time.Millisecond {
					t.Errorf("Now() of members that are 3 s apart, %s = %+v, %v, want a skew of some 3 s", when, s, err)
				}
			}
			seen("both there")
			if w := (&Ledger{c: c}).Warning(); !strings.Contains(w, "the clock of "+second+" is ahead of that of "+first) {
				t.Errorf("Warning() = %q, want the one that is ahead", w)
			}
			synctest.Wait()
			m[second] = nil
			time.Sleep(clockAgain)
			must(t, "compare()", c.compare(t.Context()))
			c.distances.looks.Wait()
			seen("one gone") // It is taken to be where it was.
		})
	}
	// People who look don't wait for it, and neither does who names one endpoint.
	for _, ahead := range [][]time.Duration{{0}, {0, 3 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := dated(t, ahead...)
			c.readOnly = len(ahead) > 1
			began := time.Now()
			if s, err := c.Now(t.Context()); err != nil || s.Skew != DefaultServerSkew || !time.Now().Equal(began) {
				t.Errorf("Now() = %+v, %v after %v, want the skew that is assumed, at once", s, err, time.Since(began))
			}
		})
	}
}
