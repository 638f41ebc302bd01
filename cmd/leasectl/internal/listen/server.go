package listen

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/health"
)

// The bounds of a request. A probe of Kubernetes has a second by default.
const (
	readTime  = 5 * time.Second
	writeTime = 5 * time.Second
	maxHeader = 8 << 10
)

// Page is where the page is, if there is one.
const Page = "/page/"

// Options of a server.
type Options struct {
	// Address is one of [Address].
	Address string
	// Worker names the worker that is to come.
	Worker event.Worker
	// Store is the store as it may be shown.
	Store string
	// Schedule is that of the worker.
	Schedule slots.Schedule
	// All are the workers, where there may be several: then Worker and Schedule mean nothing, nor does Show, and /status is
	// about all. It is called for each request.
	All func() []Worker
	// Scrub takes secrets out of a text.
	Scrub func(string) string
	// Metrics answers requests for /metrics; nil: nobody does.
	Metrics http.Handler
	// Page answers requests below [Page]; nil: nobody does.
	Page http.Handler
}

// Worker is one of several workers.
type Worker struct {
	health.Worker

	Schedule slots.Schedule
}

// Server answers requests about a worker, or several.
type Server struct {
	o      Options
	at     net.Addr
	end    context.CancelFunc
	worker atomic.Pointer[health.Worker]
	ended  chan struct{}
}

// Start listens, and answers from then on. Before [Server.Show] the worker is one that the store
// has not answered yet. An error is an [exit.Error].
func Start(o Options) (*Server, error) {
	l, err := listens(o.Address)
	if err != nil {
		return nil, err
	}
	return start(l, o), nil
}

// start answers whom a listener accepts.
func start(l net.Listener, o Options) *Server {
	l = &bounded{Listener: l, most: mostConnections, ofOne: mostOfOne}
	s := &Server{o: o, at: l.Addr(), ended: make(chan struct{})}
	s.Show(Pending(o.Worker))
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	go func() {
		defer close(s.ended)
		_ = Serve(ctx, l, s.handler(), writeTime)
	}()
	return s
}

// Serve answers until ctx ends, so that no client holds others up: it waits a few seconds for a request, answers one per
// connection, in so much time, and logs nothing.
func Serve(ctx context.Context, l net.Listener, h http.Handler, write time.Duration) error {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: write, IdleTimeout: readTime,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
	}
	s.SetKeepAlivesEnabled(false)
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); ctx.Err() == nil {
		return err
	}
	return nil
}

// Addr is where the server listens, with the port that it has.
func (s *Server) Addr() string { return s.at.String() }

// Show makes a worker the one that is asked about.
func (s *Server) Show(w health.Worker) { s.worker.Store(&w) }

// Close ends the listener, and hangs up on whoever is connected.
func (s *Server) Close() {
	s.end()
	<-s.ended
}

// asked are the workers that are asked about.
func (s *Server) asked() []Worker {
	if s.o.All != nil {
		return s.o.All()
	}
	return []Worker{{*s.worker.Load(), s.o.Schedule}}
}

// live answers for the workers that are alive, if any is: a restart that one alone needs would end the work of the others.
func (s *Server) live() http.Handler {
	all := s.asked()
	alive := slices.DeleteFunc(slices.Clone(all), func(w Worker) bool { return !w.Status().Alive() })
	if len(alive) > 0 {
		all = alive
	}
	return health.Live(Plain(all)...)
}

// Plain are workers for package health.
func Plain(all []Worker) (workers []health.Worker) {
	for _, w := range all {
		workers = append(workers, w.Worker)
	}
	return workers
}

// handler answers the paths.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { s.clean(w, r, s.live()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { s.clean(w, r, health.Ready(Plain(s.asked())...)) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { s.clean(w, r, http.HandlerFunc(s.status)) })
	if s.o.Metrics != nil {
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { s.clean(w, r, s.o.Metrics) })
	}
	if s.o.Page != nil {
		mux.Handle(Page, http.StripPrefix(strings.TrimSuffix(Page, "/"), s.o.Page))
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

// Pending is a worker that is to come.
type Pending event.Worker

// Status is that of a worker whose store has not answered yet.
func (p Pending) Status() workerlease.Status {
	return workerlease.Status{WorkerType: p.WorkerType, InstanceID: p.InstanceID}
}

// Holder knows of nobody.
func (Pending) Holder() (event.Holder, bool) { return event.Holder{}, false }
