package etcd

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/etcdpeer"
)

func TestTheTimeIsTheDateOfAMembersReply(t *testing.T) {
	t.Parallel()
	l := opened(t, Options{URI: fresh(etcdpeer.Shared(t)), ServerSkew: time.Millisecond})
	for range 20 {
		sent := time.Now()
		s, err := l.Now(within(t, 10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
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
			if s, err := l.c.Now(within(t, 300*time.Millisecond)); err == nil || !s.IsZero() {
				t.Errorf("Now() = %+v, %v, want an error", s, err)
			}
			sound := httptest.NewServer(http.NotFoundHandler())
			sound.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			defer sound.Close()
			l = opened(t, Options{URI: "etcd://" + strings.TrimPrefix(poor.URL, "http://") + "," + strings.TrimPrefix(sound.URL, "http://")})
			for range 2 {
				if s, err := l.c.Now(within(t, 10*time.Second)); err != nil || "http://"+s.Server != sound.URL {
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
		if got, err := l.c.apart(within(t, 20*time.Second)); err != nil || got < bounds[0] || got > bounds[1] {
			t.Errorf("apart() of clocks that are %v apart = %v, %v, want %v", ahead, got, err, bounds)
		}
	}
}
