package cosmos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

func TestATimeThatContradictsTheDateIsNoStamp(t *testing.T) {
	f := newFake()
	l := f.open(t, Options{})
	date := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	dated := store.Stamp{Time: date, Granularity: time.Second, MaxAge: time.Second}
	for off, want := range map[time.Duration]bool{0: true, 2 * time.Second: true, -2 * time.Second: true, 3 * time.Second: false, -time.Minute: false} {
		if s := l.stamp(date.Add(off), dated); s.IsZero() == want {
			t.Errorf("stamp(%v off the Date) = %+v, want a stamp: %v", off, s, want)
		}
	}
}

func TestAQueryThatIsRefusedHalfwayGivesNoRecordTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		for seq := range int64(250) {
			f.plant(t, "job", store.Key("job", seq+1), nil)
		}
		f.hook = func(r *fakeRequest) *fakeReply {
			if r.op == "query" && r.Header.Get("X-Ms-Continuation") == "100" {
				return refusal(400, "Invalid Continuation Token")
			}
			if r.op == "query" {
				r.Header.Set("X-Ms-Max-Item-Count", "100") // as servers may
			}
			return nil
		}
		if records, _, err := f.open(t, Options{}).Tail(within(t, time.Second), "job", 250); err == nil {
			t.Errorf("Tail() = %d records, nil, want the error", len(records))
		}
	})
}

func TestTokensThatRunOutAreNotWaitedForByTheSDK(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeAccount) {
		l := f.used(t, Options{Credential: &fakeCredential{lasts: 10 * time.Minute, answer: func(_ context.Context, asked int64) error {
			if asked > 2 {
				return &net.OpError{Op: "dial", Err: errors.New("no route")}
			}
			return nil
		}}})
		time.Sleep(9*time.Minute + 59*time.Second)
		for seq := range int64(3) {
			time.Sleep(time.Second)
			began := time.Now()
			err := l.Append(within(t, 30*time.Second), storetest.Grant("job", seq+2))
			if took := time.Since(began); took > lookWait {
				t.Errorf("Append() = %v after %v, want it told at once", err, took)
			}
		}
		if _, err := l.Get(within(t, time.Second), "job", 1); err == nil || errors.Is(err, store.ErrDenied) {
			t.Errorf("Get() without a token = %v, want an error that may pass", err)
		}
	})
}

func TestCloseLeavesNoConnectionOpen(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2 %v", http2), func(t *testing.T) {
			t.Parallel()
			f := newFake()
			var open atomic.Int64
			asked, hang := make(chan struct{}, 1), make(chan struct{})
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					_, _ = io.Copy(io.Discard, r.Body)
					asked <- struct{}{}
					select {
					case <-r.Context().Done():
					case <-hang:
					}
					return
				}
				out, err := f.Do(r)
				if err != nil {
					return
				}
				w.WriteHeader(out.StatusCode)
				_, _ = io.Copy(w, out.Body)
			}))
			s.EnableHTTP2 = http2
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				switch state {
				case http.StateNew:
					open.Add(1)
				case http.StateClosed:
					open.Add(-1)
				default:
				}
			}
			s.StartTLS()
			defer s.Close()
			defer s.CloseClientConnections()
			defer close(hang)
			l, err := Open(t.Context(), Options{URI: "cosmos://" + s.Listener.Addr().String() + "/?insecureSkipVerify=true", Key: fakeKey})
			must(t, "Open()", err)
			done := make(chan error)
			go func() { done <- l.Append(context.Background(), storetest.Grant("job", 1)) }()
			<-asked
			closed := time.Now() // realtime: those that nobody closes end by themselves, after 90 s
			wantErr(t, "Close()", l.Close(t.Context()), nil)
			wantErr(t, "Append() under way", <-done, store.ErrClosed)
			suites.Eventually(t, "no connection is open", func() bool { return open.Load() == 0 })
			if took := time.Since(closed); took > suites.Limit(5*time.Second, time.Minute) { // realtime: as above
				t.Errorf("the last connection was closed %v after Close()", took)
			}
		})
	}
}
