package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/sqlite"
)

// hostile is a text that breaks out of what is careless with it.
const hostile = "</script><img src=x onerror=alert(1)>\"'&\u202e\u2028\x1b[2J"

// everySlot is longer than any test.
var everySlot = slots.Must(slots.Every(2400 * time.Hour))

// grant is one of the slot that began n slots before the one that goes on.
func grant(seq int64, workerType string, n int, holder string) store.Record {
	slot := everySlot.At(time.Now())
	for range n {
		slot = everySlot.At(slot.Start.Add(-1))
	}
	start := slot.Start
	return store.Record{
		WorkerType: workerType, Seq: seq, Kind: store.KindGrant, InstanceID: holder, Claim: fmt.Sprintf("claim-%d", seq), Token: start.UnixMilli(),
		SlotStart: start, SlotEnd: slot.End, WindowStart: start, WindowEnd: slot.End, Schedule: everySlot.String(),
		FixedAt: start.Add(-2 * time.Second), ReadAt: start.Add(-2 * time.Second), Worker: store.Worker{Host: "host", PID: 1, Version: "v0.1.0"},
	}
}

// served is a page over a SQLite ledger with two slots of "report", one between them that nobody had, and a hostile holder.
func served(t *testing.T, a Access) (*Page, *sqlite.Ledger) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "l.db")
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err == nil {
		err = l.Init(t.Context())
	}
	must(t, err)
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	for i, r := range []store.Record{grant(1, "report", 3, "anna"), grant(2, "report", 1, hostile)} {
		if err := l.Append(t.Context(), r); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	target, err := storeuri.Parse("sqlite:"+path, func(string) string { return "" })
	must(t, err)
	p := New(Options{Target: target, Access: a, Operator: "op@here", Version: "v1", Scrub: func(s string) string { return strings.ReplaceAll(s, "s3cret", "***") }, Timeout: time.Hour})
	t.Cleanup(p.Close)
	return p, l
}

// request is one that a page on localhost makes, with headers given as name and value.
func request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost:8086"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// ask is the answer of a page.
func ask(p *Page, r *http.Request) (code int, body string) {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// wantError checks that an answer is an error on one line that says something.
func wantError(t *testing.T, what string, code int, body string, wantCode int, says string) {
	t.Helper()
	var e struct{ Error string }
	if err := json.Unmarshal([]byte(body), &e); err != nil || code != wantCode || !strings.Contains(e.Error, says) || strings.Count(body, "\n") != 1 {
		t.Errorf("%s: %d %q, want %d, and an error on one line with %q", what, code, body, wantCode, says)
	}
}

// must ends the test if something went wrong. It is for the test's own goroutine.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheAPISaysWhatTheCommandsSay(t *testing.T) {
	p, _ := served(t, Access{})
	for path, want := range map[string]string{
		"status":                  `"workerType":"report"`,
		"status?type=report":      `"schedule":"every 2400h"`,
		"slots?type=report&n=3":   `"state":"missed"`,
		"workers":                 `"workers":[]`,
		"workers?type=report":     `"workers":[]`,
		"why?type=report":         `"text":"`,
		"run?type=report":         `"slots":`,
		"doctor":                  `"checks":[`,
		"verify":                  `"sound":`,
		"why?type=report&at=noon": `"error"`,
	} {
		code, body := ask(p, request("GET", "/api/v1/"+path, ""))
		if !strings.Contains(body, want) || !json.Valid([]byte(body)) || (code == 200) == strings.Contains(want, "error") {
			t.Errorf("GET %s: %d %.200q, want JSON with %s", path, code, body, want)
		}
	}
	r, err := p.Open(t.Context(), "")
	must(t, err)
	want, err := r.Slots(t.Context(), "report", 2)
	must(t, err)
	_, body := ask(p, request("GET", "/api/v1/slots?type=report&n=2", ""))
	var got inspect.Snapshot
	err = json.Unmarshal([]byte(body), &got)
	got.StoreTime = want.StoreTime
	a, _ := json.Marshal(got)
	if b, _ := json.Marshal(want); err != nil || len(got.Slots) != 2 || !bytes.Equal(a, b) {
		t.Errorf("GET slots: %s, %v, want %s", a, err, b)
	}
}

func TestABadRequestIsRefusedInOneLine(t *testing.T) {
	p, _ := served(t, Access{})
	for _, c := range []struct {
		method, path string
		code         int
		says         string
	}{
		{"GET", "/api/v1/slots", 400, "type"},
		{"GET", "/api/v1/slots?type=report&n=1001", 400, "from 1 to 1000"},
		{"GET", "/api/v1/slots?type=report&n=-1", 400, "from 1 to 1000"},
		{"GET", "/api/v1/slots?type=report&type=x", 400, "2 times"},
		{"GET", "/api/v1/slots?type=report&x=1", 400, "unknown"},
		{"GET", "/api/v1/slots?type=%zz", 400, "query"},
		{"GET", "/api/v1/slots?type=" + strings.Repeat("a", 5000), 400, "no worker type"},
		{"GET", "/api/v1/slots?type=../etc", 400, "no worker type"},
		{"GET", "/api/v1/slots?type=other", 404, "no such worker type"},
		{"GET", "/api/v1/why?type=report&worker=nobody", 404, "no such instance"},
		{"GET", "/api/v1/events?view=all", 400, "view"},
		{"GET", "/api/v1/events?view=type", 400, "type"},
		{"GET", "/api/v1/events?type=report", 400, "type"},
		{"GET", "/api/v1/nothing", 404, "no such path"},
		{"GET", "/api/v1/../v1/status", 404, "no such path"},
		{"GET", "/api/v1//status", 404, "no such path"},
		{"GET", "/api/v1//", 404, "no such path"},
		{"GET", "//evil.example/", 404, "no such path"},
		{"GET", "/page.html", 404, "no such path"},
		{"GET", "/api/v1/status/", 404, "no such path"},
		{"POST", "/api/v1/status", 405, "takes GET"},
		{"GET", "/api/v1/orders", 405, "takes POST"},
		{"POST", "/", 405, "GET"},
	} {
		code, body := ask(p, request(c.method, c.path, ""))
		wantError(t, c.method+" "+c.path, code, body, c.code, c.says)
	}
}

// A site that makes a browser resolve its own name to this machine is the same site to the browser.
func TestAnotherHostIsRefused(t *testing.T) {
	p, _ := served(t, Access{Hosts: []string{"jobs.example.com", "192.0.2.7"}})
	for host, ok := range map[string]bool{
		"localhost": true, "localhost:1": true, "127.0.0.1:8086": true, "[::1]:8086": true, "LOCALHOST:8086": true, "jobs.example.com": true, "192.0.2.7:8086": true,
		"evil.example": false, "evil.example:8086": false, "localhost.evil.example": false, "127.0.0.1.evil.example:8086": false, "": false, "127.0.0.2": false,
	} {
		for _, path := range []string{"/", "/api/v1/status", "/api/v1/events?view=x"} {
			code, body := ask(p, request("GET", path, "", "Host", host))
			if refused := code == http.StatusForbidden; refused == ok {
				t.Errorf("GET %s of host %q: %d %.80q, want an answer: %t", path, host, code, body, ok)
			}
		}
	}
	withToken, _ := served(t, Access{Token: "0123456789abcdef"})
	if code, _ := ask(withToken, request("GET", "/", "", "Host", "any.example")); code != 200 {
		t.Errorf("with a token, the page under another name: %d, want 200: another site hasn't the token", code)
	}
}

func TestATokenIsAskedForAndAProxyNamesTheUser(t *testing.T) {
	p, _ := served(t, Access{Token: "0123456789abcdef"})
	for header, want := range map[string]int{
		"": 401, "Bearer": 401, "Bearer ": 401, "Bearer 0123456789abcdeX": 401, "Bearer 0123456789abcdef0": 401, "Basic 0123456789abcdef": 401, "Bearer 0123456789abcdef": 200,
	} {
		code, body := ask(p, request("GET", "/api/v1/status", "", "Authorization", header))
		if code != want || strings.Contains(body, "0123456789") {
			t.Errorf("Authorization %q: %d %.80q, want %d, and no token", header, code, body, want)
		}
	}
	p, _ = served(t, Access{UserHeader: "X-User"})
	for user, want := range map[string]int{"": 401, "jane": 200, "ja\x7fne": 401, strings.Repeat("x", maxUser+1): 401} {
		if code, body := ask(p, request("GET", "/api/v1/status", "", "X-User", user)); code != want {
			t.Errorf("user %.20q: %d %.80q, want %d", user, code, body, want)
		}
	}
	r := request("GET", "/api/v1/status", "", "X-User", "jane")
	r.Header.Add("X-User", "root")
	if code, _ := ask(p, r); code != 401 {
		t.Errorf("two users: %d, want 401", code)
	}
}

// safe are the headers with which the page acts.
var safe = []string{"Content-Type", "application/json", "X-Slotlease", "1", "Origin", "http://localhost:8086", "Sec-Fetch-Site", "same-origin"}

const pause = `{"action":"pause","workerType":"report","for":"10m","reason":"it's late"}`

func TestAnotherSiteCannotAct(t *testing.T) {
	p, l := served(t, Access{Actions: true})
	for _, c := range []struct{ header, value string }{
		{"Content-Type", "text/plain"},
		{"Content-Type", "application/x-www-form-urlencoded"},
		{"Content-Type", ""},
		{"X-Slotlease", ""},
		{"X-Slotlease", "2"},
		{"Origin", ""},
		{"Origin", "null"},
		{"Origin", "http://evil.example"},
		{"Origin", "http://localhost"},
		{"Origin", "http://localhost:8087"},
		{"Origin", "file://localhost:8086"},
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Host", "evil.example"},
	} {
		code, body := ask(p, request("POST", "/api/v1/orders", pause, append(append([]string{}, safe...), c.header, c.value)...))
		wantError(t, c.header+": "+c.value, code, body, 403, "")
	}
	readOnly, _ := served(t, Access{})
	code, body := ask(readOnly, request("POST", "/api/v1/orders", pause, safe...))
	wantError(t, "without --allow-actions", code, body, 403, "--allow-actions")
	if newest, _, err := l.Tail(t.Context(), "report", 1); err != nil || newest[0].Seq != 2 {
		t.Fatalf("the newest record is %+v, %v, want no order", newest, err)
	}
	if code, body := ask(p, request("POST", "/api/v1/orders?dry=1", pause, safe...)); code != 200 || strings.Contains(body, `"text"`) || !strings.Contains(body, `--for 10m --reason`) {
		t.Errorf("a dry order: %d %s, want its command alone", code, body)
	}
	if code, body := ask(p, request("POST", "/api/v1/orders?dry=1", `{"action":"prefer","workerType":"report","instanceId":"mistyped","for":"1m"}`, safe...)); code != 200 || !strings.Contains(body, `"warning":"no worker mistyped of report`) {
		t.Errorf("a dry order about a name that nobody has: %d %s, want a warning", code, body)
	}
	code, body = ask(p, request("POST", "/api/v1/orders", pause, safe...))
	newest, _, err := l.Tail(t.Context(), "report", 1)
	must(t, err)
	if o, _ := newest[0].Order(); code != 200 || o.Kind != store.OrderPause || o.By != "op@here" || o.Why != "it's late" || !strings.Contains(body, "wrote record 3") {
		t.Errorf("an order: %d %s, wrote %+v, want a pause by op@here", code, body, newest[0])
	}
}

func TestOrders(t *testing.T) {
	p, l := served(t, Access{Actions: true, UserHeader: "X-User", Hosts: []string{"jobs.example.com"}})
	for _, c := range []struct {
		body, says string
		code       int
	}{
		{`{"action":"override"}`, "must be pause", 400},
		{`{"action":"pause"}`, "workerType is missing; for is missing", 400},
		{`{"action":"pause","workerType":"report","for":"soon"}`, "must be a duration", 400},
		{`{"action":"pause","workerType":"report","for":"-1m"}`, "must be a duration", 400},
		{`{"action":"pause","workerType":"report","for":"1ns"}`, "of 1ms or more", 400},
		{`{"action":"release","workerType":"report"} {"action":"trigger","workerType":"report"}`, "one at a time", 400},
		{`{"action":"pause","workerType":"report","for":"9000h"}`, "at most 366 days", 400},
		{`{"action":"pause","workerType":"re port","for":"1m"}`, "no worker type", 400},
		{`{"action":"pause","workerType":"report","for":"1m","x":1}`, "can't be read", 400},
		{`{"action":"release","workerType":"report","now":true}`, "means nothing", 400},
		{`{"action":"release","workerType":"report","reason":"two\nlines"}`, "one line", 400},
		{`{"action":"release","workerType":"report","reason":"` + strings.Repeat("x", 300) + `"}`, "at most 256", 400},
		{`{"action":"resume","workerType":"report","kind":"all"}`, "must be pause", 400},
		{`{"action":"prefer","workerType":"report","for":"1m"}`, "instanceId is missing", 400},
		{`{"action":"release","workerType":"report"}`, "nothing was written", 409},
		{`{"action":"pause","workerType":"report","for":"1m","reason":"` + strings.Repeat("x", 8<<10) + `"}`, "can't be read", 400},
		{`[]`, "can't be read", 400},
	} {
		for _, path := range []string{"/api/v1/orders", "/api/v1/orders?dry=1"} {
			code, body := ask(p, request("POST", path, c.body, append([]string{"X-User", "jane"}, safe...)...))
			wantError(t, fmt.Sprintf("%s %.80s", path, c.body), code, body, c.code, c.says)
		}
	}
	// Behind a proxy, the browser knows it by the proxy's name.
	headers := append([]string{"X-User", "jane"}, safe...)
	headers = append(headers, "Origin", "https://jobs.example.com")
	for body, command := range map[string]string{
		`{"action":"prefer","workerType":"report","instanceId":"an na","for":"1h","now":true}`: `leasectl prefer --worker-type report --instance-id 'an na' --for 1h --now`,
		`{"action":"drain","workerType":"report","host":"h1","for":"1h"}`:                      `leasectl drain --worker-type report --host h1 --for 1h`,
		`{"action":"resume","workerType":"report","kind":"drain","host":"h1"}`:                 `leasectl resume --worker-type report --kind drain --host h1`,
		`{"action":"trigger","workerType":"report","for":"20m"}`:                               `leasectl trigger --worker-type report --within 20m`,
	} {
		code, answer := ask(p, request("POST", "/api/v1/orders", body, headers...))
		var got struct{ Text, Command string }
		if err := json.Unmarshal([]byte(answer), &got); err != nil || code != 200 || !strings.HasPrefix(got.Command, command+" --store ") || !strings.Contains(got.Text, "wrote record") {
			t.Errorf("%s: %d %s, want %q", body, code, answer, command)
		}
	}
	newest, _, err := l.Tail(t.Context(), "report", 1)
	if o, _ := newest[0].Order(); err != nil || o.By != "jane" {
		t.Errorf("the newest order is %+v, %v, want one by jane", newest[0], err)
	}
}

// Whatever stands in a ledger comes out as JSON: no text of it ends the script of a report, or moves a cursor.
func TestHostileTextsComeOutAsJSONOnly(t *testing.T) {
	p, _ := served(t, Access{})
	var report bytes.Buffer
	must(t, p.Report(t.Context(), &report))
	_, slots := ask(p, request("GET", "/api/v1/slots?type=report", ""))
	_, why := ask(p, request("GET", "/api/v1/why?type=report", ""))
	for what, text := range map[string]string{"report": report.String(), "slots": slots, "why": why} {
		for _, bad := range []string{"</script><img", "<img src=x", "\u202e", "\u2028", "\x1b"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s has %q", what, bad)
			}
		}
	}
	var got inspect.Snapshot
	if err := json.Unmarshal([]byte(slots), &got); err != nil || got.Slots[2].InstanceID != hostile {
		t.Errorf("slots: %v, the holder is %+v, want it as it was: %q", err, got.Slots, hostile)
	}
	m := regexp.MustCompile(`(?s)<script type="application/json" id="frozen">(.*?)</script>`).FindStringSubmatch(report.String())
	var f struct {
		Types  map[string]typeJSON
		Health health
	}
	if m == nil || json.Unmarshal([]byte(m[1]), &f) != nil || len(f.Types["report"].Whys) < 1 || f.Types["report"].Slots.Slots[2].InstanceID != hostile || f.Health.Verify == nil {
		t.Errorf("the report has no data, or not all: %.300q", m)
	}
}

func TestNoSecretOfAStoreIsTold(t *testing.T) {
	target, err := storeuri.Parse("postgres://jane:s3cret@127.0.0.1:1/jobs", func(string) string { return "" })
	must(t, err)
	p := New(Options{Target: target, Access: Access{Actions: true}, Operator: "op", Scrub: func(s string) string { return strings.ReplaceAll(s, "s3cret", "***") }, Timeout: 2 * time.Second})
	defer p.Close()
	s := httptest.NewServer(p)
	defer s.Close()
	next, end := stream(t, s.URL+"/api/v1/events")
	defer end()
	_, told := next()
	name, data := next()
	if name != "stale" {
		t.Errorf("came %s %s, want stale: nobody is at the address", name, data)
	}
	_, status := ask(p, request("GET", "/api/v1/status", ""))
	_, doctor := ask(p, request("GET", "/api/v1/doctor", ""))
	_, dry := ask(p, request("POST", "/api/v1/orders?dry=1", pause, safe...))
	_, given := ask(p, request("POST", "/api/v1/orders", pause, safe...))
	for _, text := range []string{told, data, status, doctor, dry, given} {
		if strings.Contains(text, "s3cret") || text == "" {
			t.Errorf("%q has the secret, or nothing", text)
		}
	}
}

func TestThePageRunsItsOwnScriptAlone(t *testing.T) {
	p, _ := served(t, Access{})
	w := httptest.NewRecorder()
	p.ServeHTTP(w, request("GET", "/", ""))
	policy := w.Header().Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	for _, name := range []string{"script", "style"} {
		if n := len(regexp.MustCompile(`<`+name+`[\s>]`).FindAll(html, -1)); n != 1 {
			t.Errorf("the page has %d elements %s, want 1, whose content the policy names", n, name)
		}
	}
	if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Set-Cookie") != "" || !bytes.Equal(w.Body.Bytes(), html) {
		t.Errorf("the page came with %v", w.Header())
	}
}
