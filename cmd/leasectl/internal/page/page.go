package page

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/advice"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/listen"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
)

// API is the version of the API. It changes when what is there changes its meaning, and not when something is added.
const API = 1

const (
	// The bounds of the clients that are connected at once: of all, and of one address, which may be a proxy's.
	mostConnections, mostConnected = 512, 256
	// patience is how long a client may take to send a body, or to read what is sent.
	patience = 5 * time.Second
	// mostAsks is how many requests ask the store at a time, beside the topics.
	mostAsks = 4
	// fresh is how old an answer of the store may be that another look is given, too. Of more than 32 worker types each is read
	// less often, so that about 32 are read in a second.
	fresh, eachType = lookEvery * 7 / 10, lookEvery / 32
)

// html is the page, with its style and script.
//
//go:embed page.html
var html []byte

// Options of a page.
type Options struct {
	Target  storeuri.Target
	Timeout time.Duration // of each look at the store; 0: 10 s
	Access  Access
	// Operator labels orders where no proxy names the user.
	Operator string
	// Version is that of the program.
	Version string
	// Scrub takes secrets out of a text.
	Scrub func(string) string
}

// Page serves the page. It opens the store when somebody looks.
type Page struct {
	o      Options
	policy string // the Content-Security-Policy
	hub    *hub
	end    context.CancelFunc
	asks   chan struct{}                 // has a place for each request that may ask the store at a time
	ahead  atomic.Pointer[time.Duration] // how far store time is ahead of the clock here; nil before the first look

	mu    sync.Mutex
	cache *inspect.Cache // of the store that is open; nil until then

	examining chan struct{}
	examined  health // the newest
}

// New makes a page. Close it.
func New(o Options) *Page {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	p := &Page{o: o, policy: policyOf(html), asks: make(chan struct{}, mostAsks), examining: make(chan struct{}, 1)}
	p.hub = &hub{look: p.look, watch: p.watch, event: p.event, topics: map[subject]*topic{}, of: map[string]int{}}
	p.hub.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// Serve listens at an address of [listen.Address], calls ready with the address that it has, and answers until ctx ends.
func (p *Page) Serve(ctx context.Context, address string, ready func(net.Addr)) error {
	l, err := listen.Open(address, mostConnections, mostConnected)
	if err != nil {
		return err
	}
	ready(l.Addr())
	return listen.Serve(ctx, l, p, time.Minute) // Answers have deadlines of their own.
}

// Close ends all streams, and closes the store.
func (p *Page) Close() {
	p.hub.close(p.end)
	p.shut()
}

// Open opens the store, if it isn't open yet. An error is one for people, with what to try. A worker type that is named is read
// anew, however many others there are.
func (p *Page) Open(ctx context.Context, workerType string) (inspect.Reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cache == nil {
		opening, cancel := context.WithTimeout(ctx, p.o.Timeout)
		defer cancel()
		l, err := p.o.Target.Open(opening, true)
		if err != nil {
			return inspect.Reader{}, advice.ForStore(p.o.Target, err)
		}
		p.cache = inspect.NewCache(l, fresh, eachType)
	}
	p.cache.Refresh(workerType, fresh)
	return inspect.Reader{Target: p.o.Target, Ledger: p.cache, Timeout: p.o.Timeout}, nil
}

// forsake closes a store that must be opened again before it answers, by its error: its file was removed, or it was set up anew.
func (p *Page) forsake(err error) error {
	if advice.Lasting(err) {
		p.shut()
	}
	return err
}

// shut closes the store, which was only read.
func (p *Page) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cache != nil {
		_ = storeuri.Close(context.Background(), p.cache)
		p.cache = nil
	}
}

// watch takes the hints of the store, until ctx ends, if it gives any.
func (p *Page) watch(ctx context.Context) {
	const again = 5 * time.Second
	for ctx.Err() == nil {
		r, err := p.Open(ctx, "")
		if err == nil && errors.Is(r.Ledger.(*inspect.Cache).Watch(ctx, p.hub.hinted), errors.ErrUnsupported) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// ServeHTTP answers. Paths are compared as they are: none is cleaned, and nothing is redirected.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The headers are read, and a body has its own time. What is left of one is read in the end.
	until := http.NewResponseController(w).SetReadDeadline
	_ = until(time.Time{})
	defer func() { _ = until(time.Now().Add(patience)) }()
	for name, value := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Content-Security-Policy": p.policy, "Cross-Origin-Resource-Policy": "same-origin",
		"Connection": "close", // A stream would be cut off for the sake of clients that ask nothing.
	} {
		w.Header().Set(name, value)
	}
	err := p.o.Access.checkHost(r)
	path, isAPI := strings.CutPrefix(r.URL.Path, "/api/v1/")
	switch {
	case isAPI:
		err = p.api(w, r, path)
	case r.URL.Path != "/":
		err = refuse(http.StatusNotFound, "no such path %.80q: the API is at api/v%d/", r.URL.Path, API)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		err = refuse(http.StatusMethodNotAllowed, "method %.20q: the page is read with GET", r.Method)
	case err == nil:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(html) // Whoever has gone has no answer.
	}
	if err != nil {
		p.fail(w, err)
	}
}

// encode is a value as JSON on one line, without secrets, and without what could end a script or move a cursor.
func (p *Page) encode(value any) []byte {
	var b, safe bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // A secret is found as it is.
	_ = encoder.Encode(value)    // texts and numbers
	clean := display.EscapeJSON(bytes.TrimSpace([]byte(p.o.Scrub(b.String()))))
	json.HTMLEscape(&safe, clean)
	return safe.Bytes()
}

// policyOf is the Content-Security-Policy of a page: its own style and script, and nothing else.
func policyOf(page []byte) string {
	source := func(name string) string { // of the one element of a name without attributes, by its content
		_, after, _ := bytes.Cut(page, []byte("<"+name+">"))
		content, _, _ := bytes.Cut(after, []byte("</"+name+">"))
		sum := sha256.Sum256(content)
		return name + "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; "
	}
	return "default-src 'none'; " + source("script") + source("style") +
		"connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
}
