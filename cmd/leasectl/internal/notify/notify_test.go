package notify

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
)

var (
	two    = time.Date(2026, 11, 28, 2, 0, 0, 0, time.UTC)
	anna   = event.Worker{WorkerType: "report", InstanceID: "anna"}
	aSlot  = slots.Slot{Start: two, End: two.Add(time.Hour)}
	aLease = event.Lease{WorkerType: "report", InstanceID: "anna", Slot: aSlot, Token: 17, Attempt: 2}
)

// exit is the error of a command.
type exit struct{ code int }

func (e exit) Error() string     { return fmt.Sprintf("exit code %d, ended by itself", e.code) }
func (e exit) ExitCode() int     { return e.code }
func (exit) Took() time.Duration { return 1500 * time.Millisecond }
func succeeded() event.Event {
	return event.TaskSucceeded{Worker: anna, Lease: aLease, Took: time.Second}
}

func failed(last bool) event.Event {
	return event.TaskFailed{Worker: anna, Lease: aLease, Err: exit{3}, GivenUp: last}
}

// What is said is judged, and in which order: a busy machine only delays it.
func TestMain(m *testing.M) {
	client.Timeout, commandTime, flushTime = time.Hour, time.Hour, time.Hour
	os.Exit(m.Run())
}

// quickly makes the waits between tries short for a test.
func quickly(t *testing.T, d time.Duration) {
	t.Helper()
	before := waits
	waits = []time.Duration{d, d, d}
	t.Cleanup(func() { waits = before })
}

// said collects the reports of a notifier.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) add(of Event, to string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, fmt.Sprintf("%s %s: %v", of, to, err))
}

func (s *said) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// target is one that Parse reads.
func target(t *testing.T, text string) Target {
	t.Helper()
	to, err := Parse(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// asked are the requests to a server, which answers by codes in turn, and then with 200.
type asked struct {
	mu     sync.Mutex
	paths  []string
	bodies []string
}

func (a *asked) serve(t *testing.T, codes ...int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		n := len(a.paths)
		a.paths, a.bodies = append(a.paths, r.Method+" "+r.URL.RequestURI()), append(a.bodies, string(body))
		a.mu.Unlock()
		if n < len(codes) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(codes[n])
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestAPOSTHasTheFacts(t *testing.T) {
	var a asked
	n := New(Options{
		Targets: map[Event]Target{Failure: target(t, a.serve(t)+"/ping/{event}/{exitCode}?rid={id}&by={instanceId}")},
		Output:  func() string { return "no space\x1b[2J left\n" },
		Failed:  func(of Event, to string, err error) { t.Error(of, to, err) },
	})
	hostile := aLease
	hostile.InstanceID = "an na&x=/../\x1b[2J"
	n.Observe(event.TaskFailed{Worker: anna, Lease: hostile, Err: exit{3}})
	n.Observe(succeeded()) // Nobody is told.
	for _, cause := range []store.Cause{store.Stopped, store.Ordered} {
		n.Observe(event.TaskFailed{Worker: anna, Lease: aLease, Err: exit{143}, Cause: cause}) // Nor of a deployment.
	}
	n.Close(nil)
	if len(a.paths) != 1 {
		t.Fatalf("requests %q, want one", a.paths)
	}
	var f Facts
	if err := json.Unmarshal([]byte(a.bodies[0]), &f); err != nil {
		t.Fatal(err)
	}
	if want := "POST /ping/failure/3?rid=" + f.ID + "&by=an%20na%26x%3D%2F..%2F%1B%5B2J"; a.paths[0] != want {
		t.Errorf("asked for %q, want %q", a.paths[0], want)
	}
	if f.WorkerType != "report" || f.SlotStart != store.Format(two) || f.SlotEnd != store.Format(aSlot.End) || f.Token != 17 || f.Attempt != 2 || *f.ExitCode != 3 || *f.TookMs != 1500 ||
		f.Reason != "exit code 3, ended by itself" || f.Output != "no space\uFFFD[2J left\n" {
		t.Errorf("body %s", a.bodies[0])
	}
	if want := "report: slot 2026-11-28T02:00:00.000Z: failed, attempt 2: exit code 3, ended by itself (told by an na&x=/../"; !strings.HasPrefix(f.Text, want) || strings.ContainsRune(f.Text, 0x1b) {
		t.Errorf("text %q, want %q…", f.Text, want)
	}
}

func TestWhatFailsIsTriedAgainUnlessThatIsInVain(t *testing.T) {
	quickly(t, time.Millisecond)
	for name, test := range map[string]struct {
		codes []int
		tries int
		want  string
	}{
		"works at last": {[]int{500, 429, 503}, 4, ""},
		"never works":   {[]int{500, 500, 500, 502, 500}, 4, "answered 502 Bad Gateway, after 4 tries"},
		"is refused":    {[]int{404}, 1, "answered 404 Not Found"},
		"redirects":     {[]int{308}, 1, "answered 308 Permanent Redirect: name the address to which it redirects"},
	} {
		var a asked
		var s said
		address := a.serve(t, test.codes...)
		n := New(Options{Targets: map[Event]Target{Success: target(t, address+"/c4n4ry?key=c4n4ry")}, Failed: s.add})
		n.Observe(succeeded())
		suites.Eventually(t, "the last try", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.paths) >= test.tries })
		n.Close(nil)
		want := test.want
		if want != "" {
			want = "success " + address + "/…: " + want
		}
		if got := s.all(); got != want || len(a.paths) != test.tries {
			t.Errorf("%s: %d tries, %q, want %d, %q", name, len(a.paths), got, test.tries, want)
		}
	}
}

// hangs is a server that answers nothing until the test ends, and says what it is asked.
func hangs(t *testing.T) (asked <-chan struct{}, address string) {
	t.Helper()
	hanging, over := make(chan struct{}, 1000), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		hanging <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(func() {
		close(over)
		s.Close()
	})
	return hanging, s.URL
}

// A try has its time, and so has the end.
func TestNeitherATryNorTheEndLastsForEver(t *testing.T) {
	quickly(t, time.Millisecond)
	for want, limit := range map[string]*time.Duration{"after 4 tries": &client.Timeout, "of the end": &flushTime} {
		before := *limit
		*limit = 20 * time.Millisecond
		_, address := hangs(t)
		var got said
		n := New(Options{Targets: map[Event]Target{Success: target(t, address)}, Failed: got.add})
		n.Observe(succeeded())
		n.Observe(succeeded())
		if limit == &client.Timeout {
			suites.Eventually(t, "both are given up", func() bool { return strings.Count(got.all(), want) == 2 })
		}
		n.Close(nil)
		if *limit = before; !strings.Contains(got.all(), want) {
			t.Errorf("reported\n%s\nwant %q", got.all(), want)
		}
	}
}

// A server that hangs keeps no event, and no end, waiting for long; what doesn't fit the queue is counted.
func TestAServerThatHangsHoldsNothingUp(t *testing.T) {
	hanging, address := hangs(t)
	var got said
	n := New(Options{Targets: map[Event]Target{Success: target(t, address)}, Failed: got.add})
	n.Observe(succeeded())
	<-hanging
	began := time.Now() // realtime: make prove judges it
	for range mostQueued + 7 {
		n.Observe(succeeded())
	}
	if took := time.Since(began); took > suites.Limit(2*time.Second, time.Hour) { // realtime: make prove judges it
		t.Errorf("107 events took %v, want none to wait", took)
	}
	urgent := make(chan struct{})
	close(urgent)
	n.Close(urgent)
	n.Observe(succeeded()) // It is too late, and does nothing.
	lines := got.all()
	for _, want := range []string{"context canceled", "7 older notifications dropped: 100 waited already", "100 more were not sent"} {
		if strings.Count(lines, want) != 1 {
			t.Errorf("reported\n%s\nwant %q once", lines, want)
		}
	}
}

// The end doesn't wait between tries.
func TestAtTheEndNothingIsTriedAgain(t *testing.T) {
	quickly(t, time.Hour)
	var a asked
	var s said
	n := New(Options{Targets: map[Event]Target{Success: target(t, a.serve(t, 500))}, Failed: s.add})
	n.Observe(succeeded())
	n.Observe(succeeded())
	n.Close(nil)
	if len(a.paths) != 2 || !strings.Contains(s.all(), "500") {
		t.Errorf("%d requests, %q, want two, of which one fails", len(a.paths), s.all())
	}
}

func TestACommandHasTheFactsInItsEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "facts")
	var s said
	n := New(Options{
		Targets: map[Event]Target{
			GivenUp: target(t, `env | grep ^LEASE_ | sort > `+file),
			Failure: target(t, `secretly c4n4ry; exit 4`),
		},
		Env:    append(os.Environ(), "LEASE_ATTEMPT=99", "LEASE_EXIT_CODE=98"),
		Failed: s.add,
	})
	quickly(t, time.Millisecond)
	n.Observe(failed(true))
	n.Close(nil)
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err, s.all())
	}
	id := Facts{Event: GivenUp, WorkerType: "report", SlotStart: store.Format(two), Attempt: 2}.complete().ID
	want := `LEASE_ATTEMPT=2
LEASE_EVENT=given-up
LEASE_EVENT_ID=` + id + `
LEASE_EXIT_CODE=3
LEASE_GROUP=
LEASE_INSTANCE_ID=anna
LEASE_MISSED=
LEASE_OUTPUT=
LEASE_REASON=exit code 3, ended by itself
LEASE_SLOT_END=2026-11-28T03:00:00.000Z
LEASE_SLOT_START=2026-11-28T02:00:00.000Z
LEASE_TEXT=report: slot 2026-11-28T02:00:00.000Z: given up, attempt 2: exit code 3, ended by itself (told by anna)
LEASE_TOKEN=17
LEASE_TOOK_MS=1500
LEASE_WORKER_TYPE=report
`
	if string(got) != want {
		t.Errorf("the command had\n%s\nwant\n%s", got, want)
	}
	if lines := s.all(); !strings.HasPrefix(lines, "failure secretly: exit code 4, ended by itself") || strings.Contains(lines, "c4n4ry") {
		t.Errorf("reported %q, want the exit code, and no argument", lines)
	}
}

// A command that ignores SIGTERM, and has started others, ends with its time.
func TestNothingOfACommandOutlivesTheEnd(t *testing.T) {
	dir := t.TempDir()
	var s said
	n := New(Options{Targets: map[Event]Target{Success: target(t, `trap '' TERM; touch `+dir+`/began; sleep 1000 & wait`)}, Env: os.Environ(), Failed: s.add})
	n.Observe(succeeded())
	suites.Eventually(t, "the command", func() bool { _, err := os.Stat(dir + "/began"); return err == nil })
	urgent := make(chan struct{})
	close(urgent)
	n.Close(urgent)
	if !strings.Contains(s.all(), "killed on request") {
		t.Errorf("reported %q, want that it was killed", s.all())
	}
}

// Whoever tells of an attempt, or of missed slots, it has the same id; each run has its own.
func TestTheIDTellsEventsApart(t *testing.T) {
	ids := func(events ...event.Event) (all []string) {
		for i, e := range events {
			for _, f := range of(e) {
				f.serial = int64(i)
				all = append(all, f.complete().ID)
			}
		}
		return all
	}
	bert := event.Worker{WorkerType: "report", InstanceID: "bert"}
	same := ids(
		event.WorkerDied{Worker: anna, Slot: aSlot, Attempt: 2, Holder: "carl"}, event.WorkerDied{Worker: bert, Slot: aSlot, Attempt: 2, Holder: "carl"},
	)
	missed := ids(event.Missed{Worker: anna, Slot: aSlot, Until: aSlot.End, Count: 1, Why: workerlease.TooLate}, event.Missed{Worker: bert, Slot: aSlot, Until: aSlot.End, Count: 1, Why: workerlease.Unreachable})
	if same[0] != same[1] || missed[0] != missed[1] || same[0] == missed[0] {
		t.Errorf("ids %q and %q, want pairs", same, missed)
	}
	free := aLease
	free.Attempt = 0
	runs := ids(failed(true), succeeded(), event.Faltered{Worker: anna, Lease: free}, event.Faltered{Worker: anna, Lease: free})
	slices.Sort(runs)
	if len(runs) != 5 || len(slices.Compact(runs)) != 5 {
		t.Errorf("ids %q, want five", runs)
	}
	if paused := of(event.Missed{Worker: anna, Slot: aSlot, Until: aSlot.End, Count: 1, Why: workerlease.Paused}); paused != nil {
		t.Errorf("a slot in a pause tells %+v, want nothing", paused)
	}
}

func TestWhatIsNoTargetIsRefusedWithoutShowingIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("https://hooks.example/c4n4ry\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if to := target(t, "@"+file); to.Shown() != "https://hooks.example/…" || !slices.Contains(to.Secrets(), "c4n4ry") {
		t.Errorf("the target in a file is %q, with secrets %q", to.Shown(), to.Secrets())
	}
	for text, want := range map[string]string{
		"":                            "must be a URL, a command line or @FILE",
		"@" + t.TempDir() + "/c4n4ry": "no such file",
		"https:///c4n4ry":             "malformed",
		"https://h/c4n4ry%zz":         "malformed",
		"http://h/c4n4ry/{slot}":      "{slot}: the placeholders are {attempt}, {event}, ",
	} {
		_, err := Parse(t.Context(), text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(text, "@") && strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("Parse(%q) = %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{"curl -d x https://h/c4n4ry": "curl", "TOKEN=c4n4ry curl": "TOKEN=…", "/usr/bin/mail root": "/usr/bin/mail"} {
		if got := target(t, text).Shown(); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// The error of a connection doesn't show the URL.
func TestTheErrorOfAConnectionShowsNoURL(t *testing.T) {
	to := target(t, "http://127.0.0.1:1/c4n4ry")
	if final, err := to.tell(t.Context(), Facts{}, Options{}); err == nil || final || strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("tell() = %v, %v, want an error without the path", final, err)
	}
}

// Nor does one that quotes the server, which may answer with what it was asked.
func TestTheErrorOfAnAnswerShowsNoURL(t *testing.T) {
	for name, answer := range map[string]string{"no HTTP": "HTTP/1.1 %s\r\n\r\n", "a place that is none": "HTTP/1.1 302 Found\r\nLocation: http://[%s\r\n\r\n"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = fmt.Fprintf(c, answer, r.RequestURI)
			_ = c.Close()
		}))
		defer server.Close()
		to := target(t, strings.Replace(server.URL, "//", "//c4n4ry-of-a-user@", 1)+"/c4n4ry-of-a-hook/{workerType}?c4n4ry-of-a-query")
		if final, err := to.tell(t.Context(), Facts{WorkerType: "report"}, Options{}); err == nil || final || strings.Contains(err.Error(), "c4n4ry") {
			t.Errorf("%s: tell() = %v, %v, want an error without the URL", name, final, err)
		}
	}
}
