package listen

import (
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/health"
)

// The bounds of a request. A probe of Kubernetes has a second by default.
const (
	readTime  = 5 * time.Second
	writeTime = 5 * time.Second
	maxHeader = 8 << 10
)

// Options of a server.
type Options struct {
	// Address is one of [Address].
	Address string
	// Worker names the worker that is to come.
	Worker workerlease.Worker
	// Store is the store as it may be shown.
	Store string
	// Schedule is that of the worker.
	Schedule slots.Schedule
	// Scrub takes secrets out of a text.
	Scrub func(string) string
	// Metrics answers requests for /metrics; nil: nobody does.
	Metrics http.Handler
}

// Server answers requests about a worker.
type Server struct {
	o      Options
	at     net.Addr
	http   *http.Server
	worker atomic.Pointer[health.Worker]
	ended  chan struct{}
}

// Start listens, and answers from then on. Before [Server.Show] the worker is one that the store
// has not answered yet. An error is an [exit.Error].
func Start(o Options) (*Server, error) {
	l, err := open(o.Address)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, at: l.Addr(), ended: make(chan struct{})}
	s.Show(pending(o.Worker))
	s.http = &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: readTime,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
	}
	s.http.SetKeepAlivesEnabled(false)
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(l) // until it is closed
	}()
	return s, nil
}

// Addr is where the server listens, with the port that it has.
func (s *Server) Addr() string { return s.at.String() }

// Show makes a worker the one that is asked about.
func (s *Server) Show(w health.Worker) { s.worker.Store(&w) }

// Close ends the listener, and hangs up on whoever is connected.
func (s *Server) Close() {
	_ = s.http.Close()
	<-s.ended
}

// asked is the worker that is asked about.
func (s *Server) asked() health.Worker { return *s.worker.Load() }

// handler answers the paths.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { s.clean(w, r, health.Live(s.asked())) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { s.clean(w, r, health.Ready(s.asked())) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { s.clean(w, r, http.HandlerFunc(s.status)) })
	if s.o.Metrics != nil {
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { s.clean(w, r, s.o.Metrics) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // Otherwise a client of HTTP/1.0 would be told that it may stay.
		mux.ServeHTTP(w, r)
	})
}

// clean passes an answer on without secrets, and without what could move the cursor of a terminal.
func (s *Server) clean(w http.ResponseWriter, r *http.Request, from http.Handler) {
	r.Header.Del("Accept-Encoding") // What is compressed can't be searched.
	a := &answer{header: w.Header(), code: http.StatusOK}
	from.ServeHTTP(a, r)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(a.code)
	body := []byte(s.o.Scrub(a.body.String()))
	if w.Header().Get("Content-Type") == "application/json" {
		body = display.EscapeJSON(body)
	}
	_, _ = w.Write(body) // Whoever has gone has no answer.
}

// answer keeps an answer until it may be shown.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

// pending is a worker that is to come.
type pending workerlease.Worker

// Status is that of a worker whose store has not answered yet.
func (p pending) Status() workerlease.Status {
	return workerlease.Status{WorkerType: p.WorkerType, InstanceID: p.InstanceID}
}

// Holder knows of nobody.
func (pending) Holder() (workerlease.Holder, bool) { return workerlease.Holder{}, false }

// counted is a connection that makes room for another when it is closed.
type counted struct {
	net.Conn

	free   <-chan struct{}
	closed sync.Once
}

// Close hangs up.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.closed.Do(func() { <-c.free })
	return err
}
