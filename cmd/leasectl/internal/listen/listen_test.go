package listen

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/secret"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/testutil/procs"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/testutil/faultstore"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

func TestMain(m *testing.M) {
	procs.Feel()
	os.Exit(m.Run())
}

// aSlot is longer than any test.
const aSlot = 2400 * time.Hour

const canary = "c4n4ry-c4n4ry"

// escaped is a secret that an encoder writes in another way.
const escaped = "c4n4ry&<more>"

// serve starts a server for workers of the type t with a schedule.
func serve(t *testing.T, schedule slots.Schedule) *Server {
	t.Helper()
	s, err := Start(options(schedule))
	must(t, err)
	t.Cleanup(s.Close)
	return s
}

// options are those of a server on a port that is free.
func options(schedule slots.Schedule) Options {
	secrets := secret.InURI("mongodb://user:" + canary + "@host/jobs")
	secrets.Hide(escaped)
	return Options{
		Address: "127.0.0.1:0", Worker: event.Worker{WorkerType: "t", InstanceID: "a"}, Store: "mongodb://***:***@host/jobs",
		Schedule: schedule, Scrub: func(text string) string { return secret.Scrub(text, secrets, nil) },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = fmt.Fprintf(w, "up 1 # %s, %q\n", canary, r.Header.Get("Accept-Encoding"))
		}),
	}
}

// probe asks as a kubelet does, and returns the code, and whether the probe succeeds.
func probe(t *testing.T, s *Server, path string) (code int, ok bool, body string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(suites.Deadline(t), http.MethodGet, "http://"+s.Addr()+path, http.NoBody)
	must(t, err)
	r.Header.Set("User-Agent", "kube-probe/1.30")
	r.Header.Set("Accept", "*/*")
	begun := time.Now() // realtime: make prove judges it
	answer, err := client.Do(r)
	must(t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	must(t, err)
	procs.Within(t, "a probe", time.Since(begun), time.Second) // realtime: make prove judges it
	return answer.StatusCode, answer.StatusCode >= 200 && answer.StatusCode < 400, string(b)
}

// statusOf is what /status answers.
func statusOf(t *testing.T, s *Server) (got status) {
	t.Helper()
	code, _, body := probe(t, s, "/status")
	// A state is text there, which isn't read back.
	whole := map[string]any{}
	err := json.Unmarshal([]byte(body), &whole)
	delete(whole, "state")
	b, _ := json.Marshal(whole)
	if err = errors.Join(err, json.Unmarshal(b, &got)); err != nil || code != http.StatusOK {
		t.Fatalf("/status = %d, %s: %v", code, body, err)
	}
	return got
}

// leasing starts a worker.
func leasing(t *testing.T, l store.Ledger, name string, every time.Duration, work func(context.Context, workerlease.Lease)) *workerlease.WorkerLease {
	t.Helper()
	w, err := workerlease.NewClient(l, workerlease.ClientOptions{}).StartLeasing(t.Context(),
		workerlease.Options{WorkerType: "t", InstanceID: name, LeaseInterval: every, MinBackoff: 10 * time.Millisecond, Continuous: every >= time.Hour},
		workerlease.Callbacks{LeaseAllocated: work})
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // realtime: the code of a worker may never return
		defer cancel()
		_ = w.StopLeasing(ctx)
	})
	return w
}

func nothing(context.Context, workerlease.Lease) {}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"9090": "127.0.0.1:9090", ":9090": "127.0.0.1:9090", "0": "127.0.0.1:0", "0.0.0.0:9090": "0.0.0.0:9090",
		"[::]:9090": "[::]:9090", "localhost:65535": "localhost:65535",
		"": "", ":": "", "65536": "", "-1": "", "http": "", ":http": "", "::1": "", "host": "", "host:": "", "1:2:3": "", "09090": "", "http://h:1": "",
	} {
		got, err := Address(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("Address(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestAPortThatIsTakenIsAClearError(t *testing.T) {
	s := serve(t, slots.Must(slots.Every(time.Minute)))
	_, err := Start(Options{Address: s.Addr()})
	e, ok := errors.AsType[*exit.Error](err)
	if want := fmt.Sprintf("--listen %q: address already in use", s.Addr()); !ok || e.Code != exit.Failure || e.Error() != want || e.Try == "" {
		t.Errorf("Start() = %v, want %s, and what to try", err, want)
	}
}

func TestProbesOfAKubelet(t *testing.T) {
	t.Parallel()
	long, down := slots.Must(slots.Every(aSlot)), func(t *testing.T, _ *Server) *workerlease.WorkerLease {
		t.Helper()
		l := faultstore.New(memory.New(memory.Options{}), faultstore.Options{})
		l.Break(faultstore.Down())
		return leasing(t, l, "a", aSlot, nothing)
	}
	for name, test := range map[string]struct {
		schedule    slots.Schedule
		worker      func(*testing.T, *Server) *workerlease.WorkerLease
		live, ready bool
		until       string // in the answer of /readyz
	}{
		"before there is a worker": {long, nil, true, false, "the store has not answered yet"},
		"the store is down":        {long, down, true, false, "the store has not answered yet: "},
		"it holds the lease": {long, func(t *testing.T, _ *Server) *workerlease.WorkerLease {
			t.Helper()
			return leasing(t, memory.New(memory.Options{}), "a", aSlot, nothing)
		}, true, true, "holds the slot"},
		"it stands by": {long, func(t *testing.T, _ *Server) *workerlease.WorkerLease {
			t.Helper()
			l := memory.New(memory.Options{})
			b := leasing(t, l.Handle(), "b", aSlot, nothing)
			suites.Eventually(t, "b holds", func() bool { return b.Status().Holding })
			return leasing(t, l.Handle(), "a", aSlot, nothing)
		}, true, true, "b holds the lease"},
		"its code overruns": {slots.Must(slots.Every(200 * time.Millisecond)), func(t *testing.T, _ *Server) *workerlease.WorkerLease {
			t.Helper()
			ends := make(chan struct{})
			w := leasing(t, memory.New(memory.Options{}), "a", 200*time.Millisecond, func(context.Context, workerlease.Lease) { <-ends })
			t.Cleanup(func() { close(ends) })
			return w
		}, false, false, "its code has not returned"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, test.schedule)
			if test.worker != nil {
				s.Show(test.worker(t, s))
			}
			suites.Eventually(t, "what /readyz says", func() bool {
				_, _, body := probe(t, s, "/readyz")
				return strings.Contains(body, test.until)
			})
			if code, ok, body := probe(t, s, "/healthz"); ok != test.live {
				t.Errorf("GET /healthz = %d, %s, want success: %v", code, body, test.live)
			}
			if code, ok, body := probe(t, s, "/readyz"); ok != test.ready {
				t.Errorf("GET /readyz = %d, %s, want success: %v", code, body, test.ready)
			}
		})
	}
}

func TestStatusSaysWhatTheWorkerDoes(t *testing.T) {
	t.Parallel()
	long := slots.Must(slots.Every(aSlot))
	s := serve(t, long)
	if got := statusOf(t, s); got.WorkerType != "t" || got.InstanceID != "a" || got.StoreTime != "" || got.UncertaintyMs != nil || got.Holds || got.Lease != nil || got.NextSlot != nil {
		t.Errorf("/status before there is a worker: %+v", got)
	}
	l := memory.New(memory.Options{})
	b := leasing(t, l.Handle(), "b", aSlot, nothing)
	suites.Eventually(t, "b holds", func() bool { return b.Status().Holding })
	s.Show(b)
	now, got := b.Status(), statusOf(t, s)
	if want := (lease{slot{store.Format(now.Lease.Slot.Start), store.Format(now.Lease.Slot.End)}, store.Format(now.Lease.Expiry), now.Lease.Token, 0}); !got.Holds || got.Lease == nil || *got.Lease != want {
		t.Errorf("/status of a holder: %+v, want %+v", got, want)
	}
	if got.Store != "mongodb://***:***@host/jobs" || got.Schedule != "every 2400h" || got.Version == "" || got.Holder == nil || got.Holder.InstanceID != "b" || got.Allocated != 1 || got.UncertaintyMs == nil || got.SampleAgeMs == nil {
		t.Errorf("/status of a holder: %+v", got)
	}
	at, err := time.Parse(time.RFC3339, got.StoreTime)
	if next := long.Next(at); err != nil || got.NextSlot == nil || got.NextSlot.Start != store.Format(next.Start) || (time.Duration(got.NextSlot.InMs)*time.Millisecond-next.Start.Sub(at)).Abs() > 2*time.Millisecond {
		t.Errorf("/status at %s names the next slot %+v", got.StoreTime, got.NextSlot)
	}
	a := leasing(t, l.Handle(), "a", aSlot, nothing)
	s.Show(a)
	suites.Eventually(t, "a stands by", func() bool { return statusOf(t, s).Lost == 1 })
	if got := statusOf(t, s); got.Holds || got.Holder == nil || got.Holder.InstanceID != "b" || got.Holder.Token != now.Lease.Token {
		t.Errorf("/status of a standby: %+v", got)
	}
	must(t, a.StopLeasing(t.Context()))
	if got := statusOf(t, s); got.Holder != nil {
		t.Errorf("/status of a worker that has stopped: %+v, want no holder: it would not see a change", got)
	}
}

// shows is a worker whose errors have a secret, and a control character.
type shows struct{ Pending }

func (shows) Status() workerlease.Status {
	return workerlease.Status{
		WorkerType: "t", InstanceID: "a\u202e", Blocked: "by " + canary, Paused: "because of " + canary, Failures: 3, Warning: "dial mongodb://user:" + canary + "@host",
		LastError: errors.New(`auth "` + canary + `" or "` + escaped + `" failed`), StoreTime: time.UnixMilli(1),
	}
}

func TestNoAnswerShowsASecret(t *testing.T) {
	s := serve(t, slots.Must(slots.Every(time.Minute)))
	s.Show(shows{})
	for _, path := range []string{"/healthz", "/readyz", "/status", "/metrics"} {
		_, _, body := probe(t, s, path)
		if strings.Contains(body, "c4n4ry") || !strings.Contains(body, "***") && path != "/healthz" || strings.Contains(body, "\u202e") {
			t.Errorf("GET %s = %s, want no secret, and nothing that changes the text around it", path, body)
		}
	}
	if _, _, body := probe(t, s, "/metrics"); !strings.Contains(body, `, ""`) {
		t.Errorf("GET /metrics = %s, want that it isn't asked to compress", body)
	}
}

// ask sends what it is given over a connection, and returns the answer: its head, and its body.
func ask(t *testing.T, s *Server, text string) (head, body string) {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	must(t, err)
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(suites.Limit(10*time.Second, time.Hour))); err != nil { // realtime: make prove judges it
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(bufio.NewReader(c)) // It hangs up after each answer.
	if err != nil && len(all) == 0 {           // What it didn't read may reset the connection when it hangs up.
		t.Fatal(err)
	}
	head, body, _ = strings.Cut(string(all), "\r\n\r\n")
	return head, body
}

func TestOtherWaysToAsk(t *testing.T) {
	t.Parallel()
	s := serve(t, slots.Must(slots.Every(time.Minute)))
	for _, test := range []struct {
		name, text string
		code       string
		body       bool
	}{
		{"HTTP/1.0", "GET /healthz HTTP/1.0\r\n\r\n", "200", true},
		{"HTTP/1.0 that would stay", "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200", true},
		{"HTTP/1.1 that would stay", "GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", "200", true},
		{"HEAD", "HEAD /healthz HTTP/1.1\r\nHost: h\r\n\r\n", "200", false},
		{"HEAD of what isn't ready", "HEAD /readyz HTTP/1.1\r\nHost: h\r\n\r\n", "503", false},
		{"HEAD of the status", "HEAD /status HTTP/1.0\r\n\r\n", "200", false},
		{"POST", "POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "405", true},
		{"another path", "GET /livez HTTP/1.1\r\nHost: h\r\n\r\n", "404", true},
		{"too long a header", "GET /healthz HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 2*maxHeader) + "\r\n\r\n", "431", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			head, body := ask(t, s, test.text)
			if _, after, _ := strings.Cut(head, " "); !strings.HasPrefix(after, test.code) || (body != "") != test.body || strings.Contains(head, "keep-alive") {
				t.Errorf("%q: %q, %q, want code %s, a body: %v, and no connection that stays", test.text[:min(len(test.text), 60)], head, body, test.code, test.body)
			}
		})
	}
}

func TestTheHelpNamesAllFieldsOfTheStatus(t *testing.T) {
	help, err := os.ReadFile(filepath.Join("..", "..", "app", "help", "listen.txt"))
	must(t, err)
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		for _, f := range reflect.VisibleFields(of) {
			below := f.Type
			if below.Kind() == reflect.Pointer {
				below = below.Elem()
			}
			if below.Kind() == reflect.Struct {
				check(below)
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !regexp.MustCompile(`\b` + name + `\b`).Match(help) {
				t.Errorf("the help doesn't name %s", name)
			}
		}
	}
	check(reflect.TypeFor[status]())
}
