package pagetest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/leasectltest"
)

// ask sends a request as it is written, but for ADDR, and returns the answer.
func ask(t *testing.T, addr, raw string) (status int, header http.Header, body string) {
	t.Helper()
	status, header, body, err := tryToAsk(addr, raw)
	if err != nil {
		t.Fatalf("%.200q: %v", raw, err)
	}
	return status, header, body
}

// tryToAsk is ask for what may be hung up on.
func tryToAsk(addr, raw string) (status int, header http.Header, body string, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, nil, "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, strings.ReplaceAll(raw, "ADDR", addr)); err != nil {
		return 0, nil, "", err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, string(b), err
}

// get is a request with further lines of its head.
func get(path string, lines ...string) string {
	return "GET " + path + " HTTP/1.1\r\n" + strings.Join(append(lines, "Connection: close", "", ""), "\r\n")
}

// post is a request to act, as the page makes it but for what differs.
func post(body string, differs ...string) string {
	head := map[string]string{"Host": "ADDR", "Content-Type": "application/json", "X-Slotlease": "1", "Origin": "http://ADDR"}
	for i := 0; i < len(differs); i += 2 {
		head[differs[i]] = differs[i+1]
	}
	var b strings.Builder
	for name, value := range head {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	return fmt.Sprintf("POST /api/v1/orders HTTP/1.1\r\n%sConnection: close\r\nContent-Length: %d\r\n\r\n%s", b.String(), len(body), body)
}

// pause is an order that the page may give.
const pause = `{"action":"pause","workerType":"report.done","for":"10m","reason":"attack"}`

// A page of another site, in the browser of somebody who may see this one, reads nothing and changes nothing: not under a name
// of its own that leads here (DNS rebinding), nor by a request that a browser lets it make (CSRF).
func TestAnotherSiteReadsAndChangesNothing(t *testing.T) {
	t.Parallel()
	uri := seeded(t)
	s := serve(t, uri, "--allow-actions")
	port := s.addr[strings.LastIndexByte(s.addr, ':'):]
	for name, raw := range map[string]string{
		"another host":                    get("/api/v1/status", "Host: evil.example"),
		"another host with the port":      get("/api/v1/status", "Host: evil.example"+port),
		"the page under another host":     get("/", "Host: evil.example"),
		"a host that begins as ours":      get("/api/v1/status", "Host: 127.0.0.1.evil.example"),
		"a host that ends as ours":        get("/api/v1/status", "Host: evil.localhost"),
		"a host in brackets":              get("/api/v1/status", "Host: [evil.example]"),
		"a user before the host":          get("/api/v1/status", "Host: localhost@evil.example"),
		"a target with a host":            get("http://evil.example/api/v1/status", "Host: ADDR"),
		"no host":                         "GET /api/v1/status HTTP/1.0\r\n\r\n",
		"an empty host":                   get("/api/v1/status", "Host:"),
		"another site's request":          get("/api/v1/status", "Host: ADDR", "Sec-Fetch-Site: cross-site"),
		"another port's request":          get("/api/v1/events", "Host: ADDR", "Sec-Fetch-Site: same-site"),
		"another site's stream":           get("/api/v1/events", "Host: evil.example"),
		"a preflight":                     "OPTIONS /api/v1/orders HTTP/1.1\r\nHost: ADDR\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\nConnection: close\r\n\r\n",
		"an order of another site":        post(pause, "Origin", "http://evil.example"),
		"an order of another port":        post(pause, "Origin", "http://127.0.0.1:1"),
		"an order of another name":        post(pause, "Origin", "http://localhost"+port),
		"an order of a sandboxed page":    post(pause, "Origin", "null"),
		"an order of nobody":              post(pause, "Origin", ""),
		"an order by two origins":         post(pause, "Origin", "http://ADDR, http://evil.example"),
		"an order under another host":     post(pause, "Origin", "http://evil.example", "Host", "evil.example"),
		"an order by a form":              post(pause, "Content-Type", "text/plain"),
		"an order by a form with a file":  post(pause, "Content-Type", "multipart/form-data; boundary=application/json"),
		"an order by a form that is JSON": post(pause, "Content-Type", "text/plain; application/json"),
		"an order without a type":         post(pause, "Content-Type", ""),
		"an order without the header":     post(pause, "X-Slotlease", ""),
		"an order from another site":      post(pause, "Sec-Fetch-Site", "cross-site"),
	} {
		status, header, body := ask(t, s.addr, raw)
		if status != http.StatusForbidden && status != http.StatusMethodNotAllowed && status != http.StatusBadRequest {
			t.Errorf("%s: %d %.200s, want it refused", name, status, body)
		}
		if strings.Contains(body, "report.done") || header.Get("Access-Control-Allow-Origin") != "" || header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v %.300s, want nothing told", name, header, body)
		}
	}
	if status := cli(t, uri, "status"); strings.Contains(status, "attack") {
		t.Errorf("leasectl status = %s, want no order", status)
	}
	for name, raw := range map[string]string{
		"its own name":     get("/api/v1/status", "Host: ADDR", "Sec-Fetch-Site: same-origin"),
		"the machine's":    get("/api/v1/status", "Host: LocalHost"+port),
		"in IPv6":          get("/api/v1/status", "Host: [::1]"+port),
		"typed by someone": get("/", "Host: ADDR", "Sec-Fetch-Site: none"),
		"an order":         post(pause),
	} {
		if status, _, body := ask(t, s.addr, raw); status != http.StatusOK {
			t.Errorf("%s: %d %.300s, want an answer", name, status, body)
		}
	}
	if status := cli(t, uri, "status"); !strings.Contains(status, "attack") {
		t.Errorf("leasectl status = %s, want the order of the page itself", status)
	}
}

// What is asked in an odd way has an error, as JSON on one line, that names what was odd and no more, and the page answers on.
func TestOddRequestsAreRefusedInOneLine(t *testing.T) {
	t.Parallel()
	s := serve(t, seeded(t), "--allow-actions")
	long := strings.Repeat("x", 6<<10)
	for path, want := range map[string]int{
		"/api/v1/../../etc/passwd":                       404,
		"/api/v1/%2e%2e/%2e%2e/etc/passwd":               404,
		"/..%2f..%2fetc%2fpasswd":                        404,
		"//api/v1/status":                                404,
		"/api/v1//status":                                404,
		"/api/v1/status/":                                404,
		"/api/v1/Status":                                 404,
		"/api/v1/":                                       404,
		"/api/v2/status":                                 404,
		"/page.html":                                     404,
		"/api/v1/%00":                                    404,
		"/" + long:                                       404,
		"/api/v1/slots":                                  400,
		"/api/v1/slots?type=":                            400,
		"/api/v1/slots?type=../../x":                     400,
		"/api/v1/slots?type=" + long:                     400,
		"/api/v1/slots?type=nosuch":                      404,
		"/api/v1/slots?type=report.done&n=0":             400,
		"/api/v1/slots?type=report.done&n=-1":            400,
		"/api/v1/slots?type=report.done&n=1e9":           400,
		"/api/v1/slots?type=report.done&n=99999999999":   400,
		"/api/v1/slots?type=report.done&type=mail.x":     400,
		"/api/v1/slots?type=report.done&x=1":             400,
		"/api/v1/slots?type=report.done;n=1":             400,
		"/api/v1/slots?type=%zz":                         400,
		"/api/v1/why?type=report.done&at=noon":           400,
		"/api/v1/why?type=report.done&at=" + long:        400,
		"/api/v1/why?type=report.done&worker=nobody":     404,
		"/api/v1/why?type=report.done&at=99999-01-01":    400,
		"/api/v1/run?type=report.done&at=0000-00-00":     400,
		"/api/v1/events?view=all":                        400,
		"/api/v1/events?type=report.done":                400,
		"/api/v1/events?view=type&type=%3Cscript%3E":     400,
		"/api/v1/orders":                                 405,
		"/api/v1/status?type=" + strings.Repeat("%2", 9): 400,
	} {
		status, header, body := ask(t, s.addr, get(path, "Host: ADDR"))
		wantRefusal(t, path, want, status, header, body)
	}
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"nothing":               {"", 400},
		"a list":                {"[]", 400},
		"half":                  {pause[:20], 400},
		"an unknown field":      {`{"action":"pause","workerType":"report.done","for":"10m","reason":"x","yes":true}`, 400},
		"an unknown action":     {`{"action":"override","workerType":"report.done","reason":"x"}`, 400},
		"no type":               {`{"action":"pause","for":"10m","reason":"x"}`, 400},
		"a type like a path":    {`{"action":"pause","workerType":"../x","for":"10m","reason":"x"}`, 400},
		"a type like a flag":    {`{"action":"pause","workerType":"--yes","for":"10m","reason":"x"}`, 400},
		"no time":               {`{"action":"pause","workerType":"report.done","reason":"x"}`, 400},
		"a time below zero":     {`{"action":"pause","workerType":"report.done","for":"-10m","reason":"x"}`, 400},
		"a time without end":    {`{"action":"pause","workerType":"report.done","for":"9999999h","reason":"x"}`, 400},
		"a reason of two lines": {`{"action":"pause","workerType":"report.done","for":"10m","reason":"x\ny"}`, 400},
		"a long reason":         {`{"action":"pause","workerType":"report.done","for":"10m","reason":"` + long + `"}`, 400},
		"too much":              {`{"action":"pause","workerType":"report.done","for":"10m","reason":"` + strings.Repeat("x", 40<<10) + `"}`, 400},
	} {
		status, header, body := ask(t, s.addr, post(c.body))
		if status == http.StatusRequestEntityTooLarge {
			status = http.StatusBadRequest
		}
		wantRefusal(t, name, c.want, status, header, body)
	}
	for name, raw := range map[string]string{
		"a huge header":      get("/", "Host: ADDR", "X: "+strings.Repeat("x", 1<<20)),
		"two hosts":          get("/", "Host: ADDR", "Host: evil.example"),
		"a space in a name":  get("/", "Host: ADDR", "Content-Length : 5"),
		"two lengths":        get("/", "Host: ADDR", "Content-Length: 5", "Content-Length: 6"),
		"a chunked half":     get("/", "Host: ADDR", "Transfer-Encoding: chunked, identity"),
		"no such protocol":   "GET / HTTP/9.9\r\nHost: ADDR\r\n\r\n",
		"another method":     "TRACE / HTTP/1.1\r\nHost: ADDR\r\nConnection: close\r\n\r\n",
		"a tunnel elsewhere": "CONNECT evil.example:80 HTTP/1.1\r\nHost: evil.example:80\r\n\r\n",
	} {
		status, _, body, err := tryToAsk(s.addr, raw)
		if hungUp := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE); hungUp {
			continue // Before all was read, so that the answer was lost on the way.
		}
		if err != nil || status < 400 || status > 599 {
			t.Errorf("%s: %d %.200s, %v, want it refused", name, status, body, err)
		}
	}
	if status, _, body := ask(t, s.addr, get("/api/v1/status", "Host: ADDR")); status != http.StatusOK {
		t.Errorf("after all of this, /api/v1/status: %d %.300s", status, body)
	}
}

// wantRefusal demands a code and one line of JSON.
func wantRefusal(t *testing.T, what string, want, status int, header http.Header, body string) {
	t.Helper()
	switch {
	case status != want:
		t.Errorf("%.80s: %d %.300s, want %d", what, status, body, want)
	case header.Get("Content-Type") != "application/json" || !strings.HasPrefix(body, `{"error":"`) || strings.Count(body, "\n") != 1 || len(body) > 1000:
		t.Errorf("%.80s: %q %.300s, want one line of JSON", what, header.Get("Content-Type"), body)
	}
}

// Whoever connects and asks nothing, or half, or reads nothing, or looks at a thousand things at once, takes the page from nobody.
func TestThePageAnswersWhileOthersHoldConnections(t *testing.T) {
	t.Parallel()
	s := serve(t, seeded(t))
	// Of what they send the first few bytes matter: these clients never read.
	for name, raw := range map[string]string{
		"nothing":           "",
		"half a head":       "GET / HTTP/1.1\r\nHost: ADDR\r\nX: ",
		"half a body":       "POST /api/v1/orders HTTP/1.1\r\nHost: ADDR\r\nContent-Length: 1000\r\n\r\n{",
		"a body of a GET":   "GET /api/v1/status HTTP/1.1\r\nHost: ADDR\r\nContent-Length: 1000\r\n\r\n",
		"streams":           get("/api/v1/events", "Host: ADDR"),
		"streams of others": get("/api/v1/events?view=type&type=nosuchTYPE", "Host: ADDR"),
		"slow answers":      get("/api/v1/slots?type=report.done", "Host: ADDR"),
	} {
		t.Run(name, func(t *testing.T) {
			var held []net.Conn
			defer func() {
				for _, c := range held {
					_ = c.Close()
				}
			}()
			for i := range 600 {
				c, err := net.Dial("tcp", s.addr)
				must(t, err)
				held = append(held, c)
				text := strings.NewReplacer("ADDR", s.addr, "TYPE", fmt.Sprint(i)).Replace(raw)
				_, _ = io.WriteString(c, text) // It may have been hung up on.
			}
			for _, path := range []string{"/", "/api/v1/status"} {
				// What the others have asked comes first.
				suites.Eventually(t, path+" is answered", func() bool {
					status, _, _ := ask(t, s.addr, get(path, "Host: ADDR"))
					return status == http.StatusOK
				})
			}
			// Somebody else can look, too, unless as many look as may: who reads nothing is cut off in time. Then they are told, and
			// let in when others have gone.
			if code, shown := watch(s.addr); !shown && (code != http.StatusTooManyRequests || !strings.HasPrefix(name, "streams")) {
				t.Errorf("a viewer more: %d, want the status, or to be told that there are too many", code)
			}
			for _, c := range held {
				_ = c.Close()
			}
			suites.Eventually(t, "a viewer more is shown the status", func() bool {
				_, shown := watch(s.addr)
				return shown
			})
		})
	}
}

// watch looks on, until the status is shown. It returns the code of the answer.
func watch(addr string) (code int, shown bool) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 0, false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(c, get("/api/v1/events", "Host: "+addr))
	res, err := http.ReadResponse(bufio.NewReader(c), nil) //nolint:bodyclose // That would wait for the end of the stream.
	if err != nil {
		return 0, false
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: status") {
			return res.StatusCode, true
		}
	}
	return res.StatusCode, false
}

// Nobody without the token, or whom the proxy doesn't name, sees or does anything, wherever the page listens.
func TestOnlyThoseWithATokenOrANameAreAnswered(t *testing.T) {
	t.Parallel()
	uri := seeded(t)
	for args, want := range map[string]string{
		"--listen 0.0.0.0:0":   "--token-file",
		"--listen [::]:0":      "--token-file",
		"--listen 192.0.2.1:0": "--token-file",
	} {
		if got := leasectltest.Leasectl(t, environment(uri), append([]string{"serve"}, strings.Fields(args)...)...); got.Code != 2 || !strings.Contains(got.Stderr, want) {
			t.Errorf("leasectl serve %s = %+v, want %q", args, got, want)
		}
	}
	const token = "correct-horse-battery-staple"
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	s := serve(t, uri, "--token-file", file, "--allow-actions")
	for name, c := range map[string]struct {
		raw  string
		want int
	}{
		"the page":        {get("/", "Host: jobs.example"), 200},
		"no token":        {get("/api/v1/status", "Host: ADDR"), 401},
		"a part":          {get("/api/v1/status", "Host: ADDR", "Authorization: Bearer "+token[:8]), 401},
		"another case":    {get("/api/v1/status", "Host: ADDR", "Authorization: Bearer "+strings.ToUpper(token)), 401},
		"another scheme":  {get("/api/v1/status", "Host: ADDR", "Authorization: Basic "+token), 401},
		"in the query":    {get("/api/v1/status?token="+token, "Host: ADDR"), 401},
		"in a cookie":     {get("/api/v1/status", "Host: ADDR", "Cookie: token="+token), 401},
		"no such path":    {get("/api/v1/nosuch", "Host: ADDR"), 401},
		"a stream":        {get("/api/v1/events", "Host: ADDR"), 401},
		"an order":        {post(pause), 401},
		"the token":       {get("/api/v1/status", "Host: jobs.example", "Authorization: Bearer "+token), 200},
		"with an order":   {post(pause, "Authorization", "Bearer "+token), 200},
		"with an odd one": {post(pause, "Authorization", "Bearer "+token, "Origin", "http://evil.example"), 403},
	} {
		status, _, body := ask(t, s.addr, c.raw)
		if status != c.want || strings.Contains(body, token) || c.want != 200 && strings.Contains(body, "report.done") {
			t.Errorf("%s: %d %.200s, want %d", name, status, body, c.want)
		}
	}
	s = serve(t, uri, "--trust-header", "X-User", "--host", "jobs.example", "--allow-actions")
	for name, c := range map[string]struct {
		raw  string
		want int
	}{
		"nobody":        {get("/api/v1/status", "Host: jobs.example"), 401},
		"an empty name": {get("/api/v1/status", "Host: jobs.example", "X-User: "), 401},
		"two names":     {get("/api/v1/status", "Host: jobs.example", "X-User: a", "X-User: b"), 401},
		"a long name":   {get("/api/v1/status", "Host: jobs.example", "X-User: "+strings.Repeat("a", 2000)), 401},
		"another host":  {get("/api/v1/status", "Host: evil.example", "X-User: rosa"), 403},
		"a user":        {get("/api/v1/status", "Host: jobs.example", "X-User: rosa"), 200},
		"a user's":      {post(strings.Replace(pause, "attack", "by name", 1), "X-User", "rosa", "Host", "jobs.example", "Origin", "https://jobs.example"), 200},
	} {
		if status, _, body := ask(t, s.addr, c.raw); status != c.want {
			t.Errorf("%s: %d %.200s, want %d", name, status, body, c.want)
		}
	}
	if status := cli(t, uri, "status"); !strings.Contains(status, "by rosa: by name") {
		t.Errorf("leasectl status = %s, want the user as the actor", status)
	}
}

// Nothing that is told has a secret of the URI, of the environment or of the arguments.
func TestNoSecretIsTold(t *testing.T) {
	const secret = "c4naryOfThePage"
	uri := seeded(t)
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(secret+"InTheToken\n"), 0o600))
	t.Setenv("SOME_PASSWORD", secret)
	s := serve(t, uri, "--token-file", file)
	for _, path := range []string{"/", "/api/v1/status", "/api/v1/workers", "/api/v1/doctor", "/api/v1/verify", "/api/v1/slots?type=report.fails", "/api/v1/why?type=report.fails", "/api/v1/run?type=report.fails", "/api/v1/nosuch"} {
		_, header, body := ask(t, s.addr, get(path, "Host: ADDR", "Authorization: Bearer "+secret+"InTheToken"))
		if strings.Contains(body, secret) || strings.Contains(fmt.Sprint(header), secret) {
			t.Errorf("%s: a secret is told in %v %.500s", path, header, body)
		}
		policy := header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: policy %q, want %q", path, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %v, want a strict policy", path, header)
		}
	}
}
