package kubernetes

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/storekit"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// These tests know a server by its replies alone, which are written after those of a real one and of Kubernetes' API
// conventions. What a real server does is tested where package kubepeer has one.

// replying is a ledger whose server replies as told to what isn't about the namespace, which nobody may read.
func replying(t *testing.T, reply http.HandlerFunc) *Ledger {
	t.Helper()
	return replyingTo(t, "k8s:jobs", reply)
}

// replyingTo is replying to a ledger with a URI.
func replyingTo(t *testing.T, uri string, reply http.HandlerFunc) *Ledger {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/namespaces/jobs") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // Only then the server sees that its client is gone.
		reply(w, r)
	}))
	t.Cleanup(s.Close)
	return opened(t, Options{URI: uri, Config: &rest.Config{Host: s.URL, BearerToken: canary}})
}

// status is a reply of the API's.
func status(code int, reason, more string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d%s}`, reason, code, more)
	}
}

// after is a reply with a Retry-After.
func after(seconds string, reply http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", seconds)
		reply(w, r)
	}
}

func TestRepliesHaveTheirMeaning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply     http.HandlerFunc
		is        error
		notStored bool
		wait      time.Duration
		text      string
	}{
		"exists":        {status(409, "AlreadyExists", `,"details":{"kind":"configmaps"}`), store.ErrConflict, false, 0, ""},
		"conflict":      {status(409, "Conflict", ""), nil, false, 0, "409"},
		"unauthorized":  {status(401, "Unauthorized", `,"message":"Unauthorized"`), store.ErrDenied, true, 0, "401"},
		"forbidden":     {status(403, "Forbidden", `,"message":"User \"worker\" cannot create"`), store.ErrDenied, true, 0, "cannot create"},
		"quota":         {status(403, "Forbidden", `,"message":"configmaps \"x\" is forbidden: exceeded quota: q, requested"`), nil, true, 0, "exceeded quota"},
		"terminating":   {status(403, "Forbidden", `,"details":{"kind":"configmaps","causes":[{"reason":"NamespaceTerminating"}]}`), store.ErrRefused, true, 0, "403"},
		"no namespace":  {status(404, "NotFound", `,"details":{"kind":"namespaces","name":"jobs"}`), store.ErrMissing, true, 0, "404"},
		"another path":  {http.NotFound, nil, true, 0, "404 Not Found: 404 page not found"},
		"throttled":     {after("7", status(429, "TooManyRequests", "")), store.ErrThrottled, true, 7 * time.Second, "429"},
		"overloaded":    {after("1", status(503, "ServiceUnavailable", "")), store.ErrThrottled, false, time.Second, "503"},
		"down":          {status(503, "ServiceUnavailable", ""), nil, false, 0, "503"},
		"too large":     {status(413, "RequestEntityTooLarge", ""), nil, true, 0, "413"},
		"invalid":       {status(422, "Invalid", ""), nil, true, 0, "422"},
		"bad":           {status(400, "BadRequest", ""), nil, true, 0, "400"},
		"internal":      {status(500, "InternalError", `,"message":"failed calling webhook"`), nil, false, 0, "webhook"},
		"timeout":       {status(504, "Timeout", ""), nil, false, 0, "504"},
		"a bad gateway": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "upstream", http.StatusBadGateway) }, nil, false, 0, "upstream"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		}, nil, false, 0, "302"},
		"no JSON":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<html>") }, nil, false, 0, "no JSON"},
		"a lost reply":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil, false, 0, ""},
		"a large reply": {func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, strings.Repeat(" ", mostReply+1)) }, nil, false, 0, "more than"},
		"another content": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, `{"metadata":{"name":"ledger-job.9007199254740990"},"immutable":true,"data":{"json":"{}"}}`)
		}, store.ErrRefused, false, 0, "another content"},
		"mutable": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, `{"metadata":{"name":"ledger-job.9007199254740990"}}`)
		}, store.ErrRefused, false, 0, "immutable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := replying(t, c.reply)
			err := l.Append(within(t), storetest.Grant("job", 1))
			if err == nil || errors.Is(err, store.ErrNotStored) != c.notStored || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), canary) {
				t.Errorf("Append() = %v, want %q, not stored: %v", err, c.text, c.notStored)
			}
			for _, sentinel := range []error{store.ErrConflict, store.ErrDenied, store.ErrMissing, store.ErrRefused, store.ErrThrottled, store.ErrNotFound} {
				if errors.Is(err, sentinel) != (c.is == sentinel) {
					t.Errorf("Append() = %v, want that it means %v", err, c.is)
				}
			}
			if throttled, ok := errors.AsType[*store.ThrottledError](err); ok && throttled.RetryAfter != c.wait {
				t.Errorf("Append() asks to wait %v, want %v", throttled.RetryAfter, c.wait)
			}
		})
	}
}

func TestWhatWasNotSentIsSurelyNotStored(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewTLSServer(http.NotFoundHandler())
	defer stranger.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	_ = closed.Close()
	for what, host := range map[string]string{"a certificate of another authority": stranger.URL, "a port where nothing listens": "http://" + closed.Addr().String()} {
		l := opened(t, Options{URI: "k8s:jobs", Config: &rest.Config{Host: host}})
		ctx := within(t)
		if err := l.Append(ctx, storetest.Grant("job", 1)); err == nil || ctx.Err() != nil || !errors.Is(err, store.ErrNotStored) {
			t.Errorf("Append() with %s = %v, want an error that says that nothing was stored", what, err)
		}
		// Past the check of the namespace, too.
		if err := l.c.Create(ctx, storekit.RecordName("job", 1), nil); !meaning(err).NotStored {
			t.Errorf("Create() with %s = %v, want that nothing was stored", what, err)
		}
	}
}

func TestTheTimeIsTheDateOfTheReply(t *testing.T) {
	t.Parallel()
	dated := func(uri, date string) *Ledger {
		return replyingTo(t, uri, func(w http.ResponseWriter, _ *http.Request) {
			if w.Header().Set("Date", date); date == "" {
				w.Header()["Date"] = nil
			}
			w.WriteHeader(http.StatusForbidden)
		})
	}
	for uri, skew := range map[string]time.Duration{"k8s:jobs": DefaultServerSkew, "k8s:jobs?serverSkew=777ms": 777 * time.Millisecond} {
		s, err := dated(uri, "Tue, 24 Nov 2026 12:31:47 GMT").Now(within(t))
		if want := time.Date(2026, 11, 24, 12, 31, 47, 0, time.UTC); err != nil || !s.Time.Equal(want) || s.Granularity != time.Second || s.MaxAge != 0 || s.Skew != skew {
			t.Errorf("Now() of %s = %+v, %v, want %v and a skew of %v", uri, s, err, want, skew)
		}
	}
	for _, date := range []string{"", "soon"} {
		if s, err := dated("k8s:jobs", date).Now(within(t)); err == nil || !s.IsZero() {
			t.Errorf("Now() with the date %q = %+v, %v, want an error", date, s, err)
		}
	}
}

func TestAListThatIsntInTheOrderOfNamesIsRefused(t *testing.T) {
	t.Parallel()
	l := replying(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"items":[{"metadata":{"name":"ledger-job.9007199254740990"}},{"metadata":{"name":"ledger-job.9007199254740989"}}]}`)
	})
	if _, _, err := l.Tail(within(t), "job", 2); !errors.Is(err, store.ErrRefused) {
		t.Errorf("Tail() = %v, want that it is refused", err)
	}
	found := examined(t, l)
	if f := found[CheckOrder]; f.Level != store.LevelFail || f.Remedy == "" {
		t.Errorf("Examine() says %+v of it", f)
	}
}

// The API server looks at all objects for either list, so that one after the other would take twice as long.
func TestWorkerTypesThatEndOddlyAreLookedForMeanwhile(t *testing.T) {
	t.Parallel()
	seen, both := map[bool]bool{}, make(chan struct{})
	var mu sync.Mutex
	l := replying(t, func(w http.ResponseWriter, r *http.Request) {
		odd := strings.HasSuffix(r.URL.Query().Get("labelSelector"), ","+oddLabel)
		mu.Lock()
		if !seen[odd] && len(seen) == 1 {
			close(both)
		}
		seen[odd] = true
		mu.Unlock()
		select {
		case <-both:
		case <-r.Context().Done():
		}
		// The label of this one is another than its name, so that no selector leaves it out.
		_, _ = fmt.Fprintf(w, `{"items":[{"metadata":{"name":"ledger-%s.9007199254740990"}}]}`, map[bool]string{true: "job-m", false: "job"}[odd])
	})
	got, err := l.c.Folders(within(t), recordFolder)
	if slices.Sort(got); err != nil || !slices.Equal(got, []string{"job", "job-"}) {
		t.Errorf("Folders() = %q, %v, want both, looked for at the same time", got, err)
	}
}

func TestAWatchThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	for want, events := range map[string]string{
		"ended at once": "",
		"too old":       `{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old resource version"}}`,
		"invalid":       "<html>",
		"unexpected":    `{"type":"ADDED","object":{"met`,
	} {
		l := replying(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("watch") {
				_, _ = fmt.Fprint(w, events)
				return
			}
			_, _ = fmt.Fprint(w, `{"metadata":{"resourceVersion":"7"}}`)
		})
		if err := l.Watch(within(t), func(string) {}); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("Watch() = %v, want %q", err, want)
		}
	}
}

// examined are the findings of an examination by their checks.
func examined(t testing.TB, l *Ledger) map[string]store.Finding {
	t.Helper()
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	by := map[string]store.Finding{}
	for _, f := range found {
		if _, twice := by[f.Check]; twice {
			t.Errorf("Examine() makes the check %s twice", f.Check)
		}
		by[f.Check] = f
		if strings.Contains(f.Text+f.Remedy, canary) {
			t.Errorf("Examine() shows a token: %+v", f)
		}
	}
	return by
}

// A control plane that is restored from a backup goes on with lower resource versions.
func TestResourceVersionsThatFallNameAnotherHistory(t *testing.T) {
	t.Parallel()
	version := ""
	l := replying(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":%q}}`, version)
	})
	names := map[string]string{}
	for _, c := range []struct{ version, like string }{{"700", "700"}, {"", "700"}, {"701", "700"}, {"odd", "700"}, {"300", "300"}, {"900", "300"}} {
		version = c.version
		_, s, err := l.Tail(within(t), "job", 1)
		if names[c.like] == "" {
			names[c.like] = s.History
		}
		if err != nil || s.History == "" || s.History != names[c.like] {
			t.Errorf("Tail() at the resource version %q = %+v, %v, want the history %q", version, s, err, names[c.like])
		}
	}
	if names["700"] == names["300"] {
		t.Errorf("the history is %q, although the resource version fell", names["700"])
	}
}

// The API server doesn't trust the webhook: nothing is wrong with the way to the API server.
func TestTheCertificateOfAWebhookIsNotTheServers(t *testing.T) {
	t.Parallel()
	l := replying(t, status(500, "InternalError", `,"message":"Internal error occurred: failed calling webhook \"w\": tls: failed to verify certificate: x509: certificate has expired or is not yet valid"`))
	err := l.Append(within(t), storetest.Grant("job", 1))
	if try := store.Remedy(err); !strings.Contains(try, "mend the webhook") {
		t.Errorf("the remedy of %v is %q, want that the webhook is mended", err, try)
	}
}
