package pagetest

import (
	"bufio"
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/internal/peer"
)

//go:embed server/package.json server/package-lock.json server/server.js
var source embed.FS

// patience bounds each wait for what a page should show.
const patience = 60 * time.Second

// browser is a process of Node.js that drives a browser.
type browser struct {
	stdin io.WriteCloser
	log   peer.Log

	mu      sync.Mutex
	newest  int64
	waiting map[int64]chan answer
	ended   bool
}

// answer is what the driver has to say of a request.
type answer struct {
	ID    int64           `json:"id"`
	Value json.RawMessage `json:"value"`
	Error string          `json:"error"`
}

// shared is the browser of all tests, which ends with the test binary: the driver sees the end of its input.
var shared = sync.OnceValues(launch)

// launch starts the driver and its browser.
func launch() (*browser, error) {
	var program string
	for _, name := range []string{os.Getenv("BROWSER"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return nil, errors.New("there is no chromium: install Debian's package of that name, or name a program in BROWSER")
	}
	script, err := peer.Script{Name: "pagetest", Title: "browser's", Source: source}.Install()
	if err != nil {
		return nil, err
	}
	b := &browser{waiting: map[int64]chan answer{}}
	cmd := exec.Command("node", script, program)
	cmd.Stderr = &b.log
	if b.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	ready := make(chan answer, 1)
	b.waiting[0] = ready
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go b.read(out)
	a := <-ready
	if a.Error != "" {
		return nil, fmt.Errorf("start %s: %s: %w", program, a.Error, b.log.Reason())
	}
	return b, nil
}

// read hands out answers until the driver ends.
func (b *browser) read(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		var a answer
		if err == nil {
			err = json.Unmarshal(line, &a)
		}
		b.mu.Lock()
		if err != nil {
			b.ended = true
			for _, w := range b.waiting {
				w <- answer{Error: "the driver of the browser has ended"}
			}
			clear(b.waiting)
			b.mu.Unlock()
			return
		}
		w := b.waiting[a.ID]
		delete(b.waiting, a.ID)
		b.mu.Unlock()
		if w != nil {
			w <- a
		}
	}
}

// ask sends a request, and waits for the answer.
func (b *browser) ask(request map[string]any) (json.RawMessage, error) {
	w := make(chan answer, 1)
	b.mu.Lock()
	b.newest++
	request["id"] = b.newest
	line, err := json.Marshal(request)
	if err == nil && b.ended {
		err = errors.New("the driver of the browser has ended")
	}
	if err == nil {
		b.waiting[b.newest] = w
		_, err = b.stdin.Write(append(line, '\n'))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	a := <-w
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Value, nil
}

// look is how a tab is to be: the options of a context of Playwright.
type look map[string]any

// wide is a desk's screen.
func wide() look { return look{"viewport": map[string]int{"width": 1280, "height": 900}} }

// tab is a tab of the browser, with cookies and storage of its own.
type tab struct {
	t       testing.TB
	b       *browser
	name    string
	allowed []string // parts of what may go wrong
}

// tabs counts tabs, whose names differ.
var tabs atomic.Int64

// open opens a tab, which ends with the test. The test fails then if a script failed in it, a dialog came up, the policy of
// the page was broken, or anything was asked of others.
func open(t testing.TB, url string, l look) *tab {
	t.Helper()
	suites.Prove(t, "it starts a browser")
	b, err := shared()
	if err != nil {
		if os.Getenv("REQUIRE_BROWSER") != "" {
			t.Fatalf("REQUIRE_BROWSER is set: %v", err)
		}
		t.Skipf("no browser: %v", err)
	}
	p := &tab{t: t, b: b, name: strconv.FormatInt(tabs.Add(1), 10)}
	if l == nil {
		l = wide()
	}
	if _, err := b.ask(map[string]any{"tab": p.name, "open": map[string]any{"url": url, "context": l}}); err != nil {
		t.Fatalf("open %s: %v", url, err)
	}
	t.Cleanup(p.close)
	return p
}

// allow takes a part of a message as nothing wrong.
func (p *tab) allow(parts ...string) { p.allowed = append(p.allowed, parts...) }

func (p *tab) close() {
	p.t.Helper()
	if p.t.Failed() {
		if text, err := p.b.ask(map[string]any{"tab": p.name, "run": "return page.url() + '\\n' + (await page.locator('body').innerText()).slice(0, 3000)"}); err == nil {
			p.t.Logf("the page shows %s", text)
		}
	}
	value, err := p.b.ask(map[string]any{"tab": p.name, "close": true})
	var faults []string
	if err := cmp.Or(err, json.Unmarshal(value, &faults)); err != nil {
		p.t.Errorf("close the tab: %v", err)
	}
next:
	for _, f := range faults {
		for _, a := range p.allowed {
			if strings.Contains(f, a) {
				continue next
			}
		}
		p.t.Errorf("in the page: %s", f)
	}
}

// run runs JavaScript in the driver, with Playwright's page, context, axe and args, and reads what it returns into a value.
func (p *tab) run(into any, script string, args ...any) {
	p.t.Helper()
	value, err := p.b.ask(map[string]any{"tab": p.name, "run": script, "args": args})
	if err != nil {
		p.t.Fatalf("%s %v: %v", script, args, err)
	}
	if into != nil {
		if err := json.Unmarshal(value, into); err != nil {
			p.t.Fatalf("%s %v = %s: %v", script, args, value, err)
		}
	}
}

// text is what an element of the page shows.
func (p *tab) text(selector string) (text string) {
	p.t.Helper()
	p.run(&text, "return page.locator(args[0]).first().innerText()", selector)
	return text
}

// await waits until JavaScript, which is run in the page, is true of it. A condition that throws isn't true yet, since an
// element is away while a view is drawn; what it threw last is shown if it never gets true.
func (p *tab) await(what, condition string, arg any) {
	p.t.Helper()
	_, err := p.b.ask(map[string]any{
		"tab": p.name,
		"run": fmt.Sprintf(`
			try {
				await page.waitForFunction((arg) => { try { delete window.thrown; %s } catch (e) { window.thrown = String(e); return false; } }, args[0], {timeout: %d});
			} catch (e) {
				throw new Error(e.message + ", the condition threw " + await page.evaluate(() => window.thrown));
			}`, condition, patience.Milliseconds()),
		"args": []any{arg},
	})
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
}

// shows waits until the page shows a text.
func (p *tab) shows(text string) {
	p.t.Helper()
	p.await(fmt.Sprintf("the page shows %q", text), "return document.body.innerText.includes(arg)", text)
}
