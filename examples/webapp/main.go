// Webapp is a web server with one background job, which runs in one of all its
// instances at a time. It shows who runs it. Start two of them on one ledger:
//
//	go run ./examples/webapp -addr 127.0.0.1:8081
//	go run ./examples/webapp -addr 127.0.0.1:8082
//
// /healthz says whether the worker does what it should: alert on it, or let a
// readiness probe ask it, if the server is of no use without its job. /livez is for a
// liveness probe. It fails when the job hangs after the end of its lease, because a
// restart fixes that. It doesn't fail when the store is down.
//
// It shuts down gracefully on a signal, or after the duration given with -for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"html"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
)

var (
	addr   = flag.String("addr", "127.0.0.1:8080", "`address` to listen on")
	path   = flag.String("ledger", "webapp.db", "`file` of the ledger")
	length = flag.Duration("for", 0, "exit after this `duration`; 0: never")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *length)
		defer cancel()
	}
	if err := run(ctx); err != nil {
		log.Fatal("webapp: ", err)
	}
}

func run(ctx context.Context) error {
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	ledger, err := sqlite.Open(ctx, sqlite.Options{Path: *path})
	if err != nil {
		return err
	}
	defer func() { _ = ledger.Close(context.WithoutCancel(ctx)) }()
	if err := ledger.Init(ctx); err != nil {
		return err
	}
	worker, err := workerlease.StartLeasing(ctx, ledger,
		workerlease.Options{WorkerType: "sitemap", LeaseInterval: 2 * time.Second},
		workerlease.Callbacks{LeaseAllocated: buildSitemap})
	if err != nil {
		return err
	}

	server := &http.Server{Handler: handler(worker), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	log.Printf("listening on http://%s", listener.Addr())

	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(err, server.Shutdown(closing), worker.StopLeasing(closing))
}

// handler serves the site and what probes ask for.
func handler(worker *workerlease.WorkerLease) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		holder, _ := worker.Holder() // zero if there is none
		_, _ = fmt.Fprintf(w, "<!doctype html><title>webapp</title><p>The sitemap is built by: %s."+
			" How the worker here is doing: <a href=\"/healthz\">/healthz</a>\n", html.EscapeString(holder.InstanceID))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		s := worker.Status()
		answer(w, s.Healthy(), s)
	})
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		s := worker.Status()
		answer(w, s.Alive(), s)
	})
	return mux
}

func answer(w http.ResponseWriter, well bool, s workerlease.Status) {
	if !well {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprintln(w, s)
}

// buildSitemap works in small steps, as long as the lease lasts.
func buildSitemap(ctx context.Context, l workerlease.Lease) {
	for page := 1; l.Valid(); page++ {
		log.Printf("sitemap: page %d, token %d", page, l.Token)
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
