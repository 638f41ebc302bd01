package documenttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
	"github.com/slotlease/slotlease/workerlease"
)

// Hooked is a transport that may answer in place of the server: Hook returns nil for requests that are to go on.
type Hooked struct {
	http.Client
	Hook func(req *http.Request) *http.Response
	Sent atomic.Int64
}

// Do counts and sends a request.
func (h *Hooked) Do(req *http.Request) (*http.Response, error) {
	h.Sent.Add(1)
	if h.Hook != nil {
		if reply := h.Hook(req); reply != nil {
			reply.Request = req
			return reply, nil
		}
	}
	return h.Client.Do(req)
}

// Reply is one with a body, headers in pairs, and the date.
func Reply(status int, body string, headers ...string) *http.Response {
	r := &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
	r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("Content-Type", "application/xml")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Fault is a reply with one of the service's errors.
func Fault(status int, code string, headers ...string) *http.Response {
	return Reply(status, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>`+code+`</Code><Message>a message</Message></Error>`, headers...)
}

// Conditional reports whether a request is a put with If-None-Match.
func Conditional(req *http.Request) bool {
	return req.Method == http.MethodPut && req.Header.Get("If-None-Match") == "*"
}

// Bucket is a store that is a storekit.Bucket, with what its tests share.
type Bucket struct {
	// Open opens a ledger in a folder jobs of a bucket of its own, whose requests go by a transport.
	Open func(t *testing.T, h *Hooked, readOnly bool) store.Ledger
	// Stored is the reply to a put that has stored its object.
	Stored func() *http.Response
	// Lists reports whether a request asks for a list, and Listed is its reply.
	Lists  func(req *http.Request) bool
	Listed func(names []string) *http.Response
	// Missing opens a ledger in a bucket that isn't there, and NoBucket is what is said of that. Denied are ledgers with logins that
	// allow nothing.
	Missing  func(t *testing.T) store.Ledger
	NoBucket string
	Denied   map[string]func(t *testing.T) store.Ledger
	// Puts are replies to the put of a record.
	Puts map[string]Put
}

// Put is a reply to the put of a record: what an append's error is then, whether surely nothing was stored, and what it says.
type Put struct {
	Reply     *http.Response
	Is        error
	NotStored bool
	Says      string
}

// Run runs the tests.
func (b Bucket) Run(t *testing.T) {
	t.Helper()
	t.Run("a page of somebody else is no answer", b.foreign)
	t.Run("a service that ignores If-None-Match is refused", b.ignorant)
	t.Run("whether If-None-Match is heeded is tried once", b.proof)
	t.Run("a list that isn't in the order of names is an error", b.unordered)
	t.Run("an examination ends in time", b.silence)
	t.Run("what the service says has its meaning", b.meanings)
	t.Run("appends are unknown unless the service surely stored nothing", b.puts)
}

// foreign: between a worker and the service there may be something that answers anything with a page of its own.
func (b Bucket) foreign(t *testing.T) {
	t.Parallel()
	h := &Hooked{}
	l := b.Open(t, h, false)
	Must(t, "Append()", l.Append(Within(t, patience), storetest.Grant("job", 1)))
	h.Hook = func(*http.Request) *http.Response {
		return Reply(200, "<html><body>Please log in</body></html>", "Content-Type", "text/html")
	}
	if err := l.Append(Within(t, patience), storetest.Grant("job", 2)); err == nil || errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrConflict) {
		t.Errorf("Append() that a portal answers = %v, want an outcome that is unknown", err)
	}
	if records, _, err := l.Tail(Within(t, patience), "job", 3); err == nil {
		t.Errorf("Tail() that a portal answers = %v, nil, want an error", records)
	}
	if types, err := l.WorkerTypes(Within(t, patience)); err == nil {
		t.Errorf("WorkerTypes() that a portal answers = %v, nil, want an error", types)
	}
}

func (b Bucket) ignorant(t *testing.T) {
	t.Parallel()
	l := b.Open(t, &Hooked{Hook: func(req *http.Request) *http.Response {
		if Conditional(req) {
			return b.Stored()
		}
		return nil
	}}, false)
	err := l.Append(Within(t, patience), storetest.Grant("job", 1))
	Sentinel(t, "Append()", err, store.ErrRefused)
	Says(t, "Append()", err, store.ErrNotStored, "ignores If-None-Match: it stored two objects under one name")
	Is(t, "Init()", l.Init(Within(t, patience)), store.ErrRefused)
}

func (b Bucket) proof(t *testing.T) {
	t.Parallel()
	for readOnly, want := range map[bool]int64{false: 1, true: 0} {
		var puts atomic.Int64
		l := b.Open(t, &Hooked{Hook: func(req *http.Request) *http.Response {
			if req.Method == http.MethodPut {
				puts.Add(1)
			}
			return nil
		}}, readOnly)
		for range 3 {
			_, err := l.WorkerTypes(Within(t, patience))
			Must(t, "Init() and WorkerTypes()", errors.Join(l.Init(Within(t, patience)), err))
		}
		if got := puts.Load(); got != want {
			t.Errorf("puts of three Init() by a handle that only reads (%v) = %d, want %d", readOnly, got, want)
		}
	}
}

func (b Bucket) unordered(t *testing.T) {
	t.Parallel()
	for name, names := range map[string][]string{
		"twice the same":  {"jobs/ledger/job/9007199254740990", "jobs/ledger/job/9007199254740990"},
		"oldest first":    {"jobs/ledger/job/9007199254740990", "jobs/ledger/job/9007199254740989"},
		"of other folder": {"jobs/ledger/jobs/9007199254740990"},
	} {
		l := b.Open(t, &Hooked{Hook: func(req *http.Request) *http.Response {
			if !b.Lists(req) {
				return nil
			}
			return b.Listed(names)
		}}, false)
		_, _, err := l.Tail(Within(t, patience), "job", 9)
		Says(t, "Tail() of a list with "+name, err, nil, "not in the order of names")
	}
}

func (b Bucket) silence(t *testing.T) {
	t.Parallel()
	h := &Hooked{}
	l := b.Open(t, h, false)
	examine := store.Describe(l).Examine
	h.Hook = func(req *http.Request) *http.Response { <-req.Context().Done(); return nil }
	began := time.Now()
	found, err := examine(Within(t, 500*time.Millisecond))
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("Examine() took %v, want it to end with its context", took)
	}
	Must(t, "Examine()", err)
	Finds(t, found, store.CheckConnection, store.LevelFail, "no answer in time")
	Must(t, "Close()", l.Close(Within(t, patience)))
	_, err = examine(Within(t, patience))
	Is(t, "Examine() after Close()", err, store.ErrClosed)
}

func (b Bucket) meanings(t *testing.T) {
	t.Parallel()
	l, first := b.Open(t, &Hooked{}, false), storetest.Grant("job", 1)
	Must(t, "Append()", l.Append(Within(t, patience), first))
	Sentinel(t, "Append() of a key that exists", l.Append(Within(t, patience), first), store.ErrConflict)
	Sentinel(t, "Get() of a key that doesn't", ErrorOf(l.Get(Within(t, patience), "job", 2)), store.ErrNotFound)
	for name, call := range Operations(b.Missing(t), first) {
		if name == "Init" {
			continue
		}
		err := call(Within(t, patience))
		Sentinel(t, name+" without a bucket", err, store.ErrMissing)
		Says(t, name+" without a bucket", err, store.ErrNotStored, b.NoBucket)
	}
	for who, open := range b.Denied {
		for name, call := range Operations(open(t), storetest.Grant("job", 2)) {
			err := call(Within(t, patience))
			Sentinel(t, name+" "+who, err, store.ErrDenied)
			Is(t, name+" "+who, err, store.ErrNotStored)
		}
	}
}

// puts: what can't be provoked on a server is said in its place.
func (b Bucket) puts(t *testing.T) {
	t.Parallel()
	for name, c := range b.Puts {
		h := &Hooked{}
		l := b.Open(t, h, false)
		Must(t, "Init()", l.Init(Within(t, patience)))
		h.Hook = func(req *http.Request) *http.Response {
			if Conditional(req) {
				return c.Reply
			}
			return nil
		}
		Means(t, "Append() with "+name, l.Append(Within(t, patience), storetest.Grant("job", 1)), c.Is, c.NotStored, c.Says)
	}
}

// FaultsOf demands that all faults of URIs are named by Open's error, those of one separated by a |, and no secret.
func FaultsOf(t *testing.T, open func(uri string) error, redact func(uri string) string, secret string, all map[string]string) {
	t.Helper()
	for uri, want := range all {
		err, shown := open(uri), redact(uri)
		Says(t, fmt.Sprintf("Open(%q)", uri), err, nil, strings.Split(want, "|")...)
		if strings.Contains(fmt.Sprint(err)+shown, secret) {
			t.Errorf("Open(%q) = %v, Redact() = %q, want no secret", uri, err, shown)
		}
	}
}

// CoarseFailover demands that a failover is refused which the time of a ledger with a skew is too coarse for, and sentences about
// what is durable.
func CoarseFailover(t *testing.T, l store.Ledger, want time.Duration) {
	t.Helper()
	d := store.Describe(l)
	Equal(t, "FailoverFloor", d.FailoverFloor, want)
	_, err := workerlease.NewClient(l, workerlease.ClientOptions{}).StartLeasing(t.Context(),
		workerlease.Options{WorkerType: "job", LeaseInterval: time.Minute, FailoverWithin: want - time.Millisecond},
		workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
	Says(t, "StartLeasing() with less", err, workerlease.ErrOptions, "on this store, which knows the time too poorly")
	said := d.Durability()
	if slices.ContainsFunc([]string{said.Crash, said.Power, said.Failover}, func(s string) bool { return !strings.HasSuffix(s, ".") || strings.Contains(s, "\n") }) {
		t.Errorf("Durability() = %+v, want sentences", said)
	}
}

// ShowNothing demands that neither errors nor Redact show a key that stands anywhere in a URI. A shape has %s in its place.
func ShowNothing(f *testing.F, parse func(uri string) error, redact func(uri string) string, shapes ...string) {
	f.Helper()
	for _, key := range []string{"", "s3cret+/", "x@h/", "%zz", "a=b&c=d", "p\"\\\x00\xff", "a;b"} {
		for i := range shapes {
			f.Add(key, byte(i))
			f.Add(key, byte(i+128))
		}
	}
	f.Fuzz(func(t *testing.T, key string, shape byte) {
		key = Canary + key
		if shape&128 != 0 {
			key = url.QueryEscape(key)
		}
		whole := strings.ReplaceAll(shapes[int(shape&127)%len(shapes)], "%s", key)
		if shown := redact(whole); strings.Contains(shown, Canary) {
			t.Fatalf("Redact(%q) = %q, want no secret", whole, shown)
		}
		if err := parse(whole); err != nil && strings.Contains(err.Error(), Canary) {
			t.Fatalf("parseURI(%q) = %v, want no secret", whole, err)
		}
	})
}
