package s3

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/s3peer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// Now is a HEAD, whose reply has no body.
func TestALookAtTheTimeIsThrottledWithoutACode(t *testing.T) {
	t.Parallel()
	l, _ := hookedLedger(t, Options{}, nil)
	must(t, "Init()", l.Init(within(t)))
	l.transport.(*hooked).Hook = func(*http.Request) *http.Response { return reply(503, "", "Retry-After", "3") }
	_, err := l.Now(within(t))
	throttled, ok := errors.AsType[*store.ThrottledError](err)
	if !ok || throttled.RetryAfter != 3*time.Second {
		t.Errorf("Now() = %v, want it throttled for 3s", err)
	}
}

func TestAnAppendIsTriedAgainWhileAnotherIsInProgress(t *testing.T) {
	t.Parallel()
	tries, most := 0, 2
	l, _ := hookedLedger(t, Options{}, nil)
	must(t, "Init()", l.Init(within(t)))
	l.transport.(*hooked).Hook = func(req *http.Request) *http.Response {
		if tries++; conditional(req) && tries <= most {
			return fault(409, "ConditionalRequestConflict")
		}
		return nil
	}
	must(t, "Append() after two conflicts of requests", l.Append(within(t), storetest.Grant("job", 1)))
	documenttest.Equal(t, "tries", tries, 3)
	tries, most = 0, 100
	err := l.Append(within(t), storetest.Grant("job", 2))
	documenttest.Sentinel(t, "Append() while requests conflict", err, nil)
	documenttest.Equal(t, "tries", tries, contended)
	if errors.Is(err, store.ErrNotStored) {
		t.Errorf("Append() while requests conflict = %v, want it unknown", err)
	}
	// The wait ends with the context.
	tries = 0
	ctx, cancel := context.WithTimeout(t.Context(), contention/2)
	defer cancel()
	documenttest.Is(t, "Append() with little time", l.Append(ctx, storetest.Grant("job", 3)), context.DeadlineExceeded)
}

func TestAReadIsTriedAgainWhileTheServiceFails(t *testing.T) {
	t.Parallel()
	tries, most := 0, 2
	l, _ := hookedLedger(t, Options{}, nil)
	must(t, "Init()", l.Init(within(t)))
	must(t, "Append()", l.Append(within(t), storetest.Grant("job", 1)))
	l.transport.(*hooked).Hook = func(req *http.Request) *http.Response {
		if tries++; tries <= most {
			return fault(500, "InternalError")
		}
		return nil
	}
	records, _, err := l.Tail(within(t), "job", 1)
	if must(t, "Tail() after two failures of the service", err); len(records) != 1 || tries != 4 {
		t.Errorf("Tail() after two failures = %d records after %d requests, want one after 4: two that fail, a list and a read", len(records), tries)
	}
	tries, most = 0, 100
	_, err = l.Get(within(t), "job", 1)
	documenttest.Says(t, "Get() while the service fails", err, nil, "500 InternalError")
	documenttest.Equal(t, "tries", tries, asked)
	tries = 0
	err = l.Append(within(t), storetest.Grant("job", 2))
	documenttest.Says(t, "Append() while the service fails", err, nil, "500 InternalError")
	documenttest.Equal(t, "tries of an append", tries, 1)
}

// Workers that start together create one bucket, and a service may fail while it does.
func TestInitIsTriedAgainWhileTheServiceFails(t *testing.T) {
	t.Parallel()
	failed := map[string]bool{}
	h := &hooked{Hook: func(req *http.Request) *http.Response {
		if request := req.Method + " " + req.URL.String(); !failed[request] {
			failed[request] = true
			return fault(500, "InternalError")
		}
		return nil
	}}
	l := opened(t, Options{URI: uriOf(s3peer.Shared(t), newBucket()+"/jobs"), Transport: h})
	must(t, "Init() of which each request fails at first", l.Init(within(t)))
	documenttest.Equal(t, "kinds of requests that failed: the bucket twice, its rules, its versions, the probe", len(failed), 5)
	h.Hook = func(*http.Request) *http.Response { return fault(500, "InternalError") }
	documenttest.Says(t, "Init() while the service fails", l.Init(within(t)), nil, "500 InternalError")
}

// failing are credentials that can't be had.
type failing struct{}

func (failing) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{}, errors.New("the role is gone")
}

func TestWithoutCredentialsNothingIsSent(t *testing.T) {
	t.Parallel()
	h := &hooked{}
	l := opened(t, Options{URI: uriOf("http://127.0.0.1:1", "bucket/jobs"), Credentials: failing{}, Transport: h})
	err := l.Append(within(t), storetest.Grant("job", 1))
	documenttest.Sentinel(t, "Append()", err, store.ErrDenied)
	documenttest.Says(t, "Append()", err, store.ErrNotStored, "no credentials: set AWS_ACCESS_KEY_ID", "the role is gone")
	documenttest.Equal(t, "requests", h.Sent.Load(), 0)
}

// The server refuses a date that is wrong by more than 15 min.
func TestAMachineWhoseClockIsWrongSignsRightFromTheSecondRequestOn(t *testing.T) {
	t.Parallel()
	endpoint := s3peer.Shared(t)
	for _, off := range []time.Duration{-3 * time.Hour, 24 * time.Hour, 0} {
		c := clock.NewMock()
		c.Set(time.Now().Add(off))
		refused := 0
		h := &hooked{}
		l := opened(t, Options{URI: uriOf(endpoint, newBucket()), Clock: c, Transport: counting{h, &refused}})
		must(t, "Init()", l.Init(context.WithoutCancel(t.Context())))
		must(t, "Append()", l.Append(context.WithoutCancel(t.Context()), storetest.Grant("job", 1)))
		want := 1
		if off == 0 {
			want = 0
		}
		documenttest.Equal(t, "refusals of a machine that is off by "+off.String(), refused, want)
		s, err := l.Now(context.WithoutCancel(t.Context()))
		if err != nil || time.Since(s.Time).Abs() > time.Minute {
			t.Errorf("Now() = %+v, %v, want the server's time", s, err)
		}
		// A suspend: the clock stood still, and the server's went on.
		l.Hear(t.Context(), &http.Response{Request: &http.Request{URL: &url.URL{}}, Header: http.Header{"Date": {time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)}}})
		must(t, "Append() after a suspend", l.Append(context.WithoutCancel(t.Context()), storetest.Grant("job", 2)))
	}
}

// counting counts what the server refuses for its date.
type counting struct {
	*hooked
	refused *int
}

func (c counting) Do(req *http.Request) (*http.Response, error) {
	r, err := c.hooked.Do(req)
	if err == nil && r.StatusCode == http.StatusForbidden {
		*c.refused++
	}
	return r, err
}
