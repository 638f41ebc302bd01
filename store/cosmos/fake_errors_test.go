package cosmos

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
)

var within, must, wantErr = documenttest.Within, documenttest.Must, documenttest.Is

// wantSentinel demands that an error matches one sentinel and no other, in one
// short line without a secret; nil is for an error that means "unknown".
func wantSentinel(t *testing.T, what string, err, want error) {
	t.Helper()
	documenttest.Sentinel(t, what, err, want)
	if err != nil {
		wantNoSecret(t, what, err.Error())
	}
}

// wantNoSecret demands that a text holds no part of the key.
func wantNoSecret(t *testing.T, what, text string) {
	t.Helper()
	for _, part := range []string{"aHVudGVy", "hunter2", "LaHVud"} {
		if strings.Contains(text, part) {
			t.Errorf("%s = %q, want no %q in it", what, text, part)
		}
	}
}

// once is a hook that answers the first request of a kind, or all if always.
func once(op string, always bool, answer func(r *fakeRequest) *http.Response) func(*fakeRequest) *http.Response {
	var met atomic.Int64
	return func(r *fakeRequest) *http.Response {
		if r.op != op || met.Add(1) > 1 && !always {
			return nil
		}
		return answer(r)
	}
}

func TestAppendErrorsByTheReply(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("broken\r\nand long ", 1000)
	for _, c := range []struct {
		name  string
		reply func() *http.Response
		want  error
		text  string
	}{
		{"400", func() *http.Response { return refusal(400, "bad") }, nil, "400 Bad Request: bad"},
		{"401 with a wrong key", func() *http.Response { return refusal(401, "The input authorization token can't serve the request") }, store.ErrDenied, "401"},
		{"403 of a firewall or a missing right", func() *http.Response { return refusal(403, "Request blocked by Auth", headerSubstatus, "5302") }, store.ErrDenied, "substatus 5302"},
		{"403 of a full partition", func() *http.Response {
			return refusal(403, "Partition key reached maximum size of 20 GB", headerSubstatus, "1014")
		}, nil, "20 GB"},
		{"404 of a missing container", func() *http.Response { return refusal(404, "Owner resource does not exist", headerSubstatus, "1003") }, store.ErrMissing, ""},
		{"408", func() *http.Response { return refusal(408, "timed out") }, nil, "408 Request Timeout"},
		{"409", func() *http.Response { return refusal(409, "exists") }, store.ErrConflict, ""},
		{"410", func() *http.Response { return refusal(410, "gone") }, nil, ""},
		{"412", func() *http.Response { return refusal(412, "precondition") }, nil, ""},
		{"413", func() *http.Response { return refusal(413, "too large") }, nil, ""},
		{"500 with a long text of many lines", func() *http.Response { return refusal(500, many) }, nil, "500"},
		{"503", func() *http.Response { return refusal(503, "busy") }, nil, ""},
		{"a redirection", func() *http.Response { return reply(307, nil, "Location", "https://elsewhere.example/") }, nil, "307"},
		{"HTML of a proxy", func() *http.Response { return reply(502, "<html>"+many) }, nil, "502 Bad Gateway"},
		{"200 of a proxy: only 201 means stored", func() *http.Response { return reply(200, "<html>blocked") }, nil, "200"},
		{"a connection that breaks", func() *http.Response { return hangUp }, nil, "unexpected EOF"},
	} {
		t.Run(c.name, inBubble(func(t *testing.T) {
			f := newFake()
			f.hook = once("create", true, func(*fakeRequest) *http.Response { return c.reply() })
			l := f.open(t, Options{})
			began := time.Now()
			err := l.Append(within(t, time.Minute), storetest.Grant("job", 7))
			wantSentinel(t, "Append()", err, c.want)
			if took := time.Since(began); took > 0 {
				t.Errorf("Append() took %v, want it to fail at once", took)
			}
			if n := f.ops("create"); n != 1 {
				t.Errorf("creates sent = %d, want 1: only the caller knows whether to try again", n)
			}
			if err == nil {
				return
			}
			if want := "cosmos: append job:00000000000000000007: "; !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("Append() = %v, want it to begin with %q and to hold %q", err, want, c.text)
			}
		}))
	}
}

func TestAppendThatTimedOutAtTheServerMayHaveHappened(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func() *http.Response{
		"408":                      func() *http.Response { return refusal(408, "timed out") },
		"503":                      func() *http.Response { return refusal(503, "unavailable") },
		"a connection that breaks": func() *http.Response { return hangUp },
		"a reply that never comes": func() *http.Response { return silence },
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			f := newFake()
			f.hook = once("create", false, func(r *fakeRequest) *http.Response {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.answer(r)
				return answer()
			})
			l := f.open(t, Options{})
			r := storetest.Grant("job", 7)
			wantSentinel(t, "Append()", l.Append(within(t, time.Second), r), nil)
			if got, err := l.Get(within(t, time.Second), "job", 7); err != nil || got != r {
				t.Errorf("Get() = %+v, %v, want the record that was stored all the same", got, err)
			}
			wantSentinel(t, "Append() again", l.Append(within(t, time.Second), r), store.ErrConflict)
		}))
	}
}

func TestLostConnectionsAreLeftToTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := f.open(t, Options{})
		if _, err := l.Now(within(t, time.Minute)); err != nil {
			t.Fatal(err)
		}
		f.set(func() { f.hook, f.log = func(*fakeRequest) *http.Response { return hangUp }, nil })
		for name, call := range map[string]func(ctx context.Context) error{
			"Get":  func(ctx context.Context) error { _, err := l.Get(ctx, "job", 1); return err },
			"Tail": func(ctx context.Context) error { _, _, err := l.Tail(ctx, "job", 1); return err },
			"Now":  func(ctx context.Context) error { _, err := l.Now(ctx); return err },
		} {
			began := time.Now()
			err := call(within(t, time.Minute))
			wantSentinel(t, name+"()", err, nil)
			if took := time.Since(began); took > 0 || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s() = %v after %v, want the cause at once", name, err, took)
			}
		}
		if len(f.log) != 3 {
			t.Errorf("requests sent = %d, want 3: the SDK would have tried each several times", len(f.log))
		}
	})
}

func TestRegionThatTakesNoWritesIsTriedUntilItDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.properties["writableLocations"], f.properties["readableLocations"] = regions("West Europe"), regions("West Europe", "North Europe")
		refused := 0
		f.hook = once("create", true, func(r *fakeRequest) *http.Response {
			if strings.HasPrefix(r.URL.Host, "acct-westeurope.") {
				if refused++; refused == 2 {
					// The failover is over.
					f.set(func() { f.properties["writableLocations"] = regions("North Europe") })
				}
				return refusal(403, "The requested operation cannot be performed at this region", headerSubstatus, "3")
			}
			return nil
		})
		l := f.open(t, Options{})
		if err := l.Append(within(t, time.Minute), storetest.Grant("job", 1)); err != nil {
			t.Errorf("Append() during a failover = %v, want it to land in the new region", err)
		}
		records, stamp, err := l.Tail(within(t, time.Second), "job", 1)
		if err != nil || len(records) != 1 || !strings.HasPrefix(stamp.Server, "acct-northeurope.") {
			t.Errorf("Tail() = %d records, stamp %+v, %v, want one, read where writes go now", len(records), stamp, err)
		}
		if got := l.Account().WriteRegions; len(got) != 1 || got[0] != "North Europe" {
			t.Errorf("Account().WriteRegions = %q, want that after the failover", got)
		}

		f.hook = once("create", true, func(*fakeRequest) *http.Response {
			return refusal(403, "not here", headerSubstatus, "3")
		})
		err = l.Append(within(t, 3500*time.Millisecond), storetest.Grant("job", 2))
		wantSentinel(t, "Append() while no region takes writes", err, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "substatus 3") {
			t.Errorf("Append() = %v, want context.DeadlineExceeded, and what the server said", err)
		}
	})
}

func TestGetTellsAMissingItemFromAMissingContainer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply func() *http.Response
		want  error
	}{
		"no substatus":                {func() *http.Response { return refusal(404, "Resource Not Found") }, store.ErrNotFound},
		"substatus 0":                 {func() *http.Response { return refusal(404, "Resource Not Found", headerSubstatus, "0") }, store.ErrNotFound},
		"of the container":            {func() *http.Response { return refusal(404, "Owner resource does not exist", headerSubstatus, "1003") }, store.ErrMissing},
		"of a region that lags":       {func() *http.Response { return refusal(404, "read session not available", headerSubstatus, "1002") }, nil},
		"none but an internal error":  {func() *http.Response { return refusal(500, "oops") }, nil},
		"none but a denied request":   {func() *http.Response { return refusal(403, "no") }, store.ErrDenied},
		"none but an odd, empty body": {func() *http.Response { return reply(404, nil) }, store.ErrNotFound},
		"none but more than is read":  {func() *http.Response { return reply(200, strings.Repeat("x", maxBody+1)) }, nil},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			f := newFake()
			f.hook = once("read", true, func(*fakeRequest) *http.Response { return c.reply() })
			_, err := f.open(t, Options{}).Get(within(t, time.Minute), "job", 1)
			wantSentinel(t, "Get()", err, c.want)
		}))
	}
}

func TestOperationsEndWithTheContextWhateverTheServerDoes(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"account", "container", "create", "read", "query", "delete"} {
		t.Run("silence to "+op, inBubble(func(t *testing.T) {
			f := newFake()
			f.plant(t, "job", store.Key("job", 1), nil)
			f.plant(t, "job", store.Key("job", 2), nil)
			f.hook = once(op, true, func(*fakeRequest) *http.Response { return silence })
			l := f.open(t, Options{})
			hung := 0
			for name, call := range documenttest.Operations(l, storetest.Grant("job", 3)) {
				began := time.Now()
				err := call(within(t, 200*time.Millisecond))
				switch took := time.Since(began); {
				case took == 0:
					continue // It had nothing to do with this kind of request.
				case took != 200*time.Millisecond || !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("%s() = %v after %v, want context.DeadlineExceeded after 200ms", name, err, took)
				}
				hung++
				wantSentinel(t, name+"()", err, nil)
			}
			if hung == 0 {
				t.Error("no operation met the silence")
			}
			wantErr(t, "Close()", l.Close(t.Context()), nil)
			// The bubble waits for all goroutines: none may outlive Close.
		}))
	}
}
