// Webapp is a web server with one background job, which runs in one of all its
// instances at a time. /healthz says how the worker is doing. Start two of them
// on one ledger:
//
//	go run ./examples/webapp -addr 127.0.0.1:8081
//	go run ./examples/webapp -addr 127.0.0.1:8082
//
// It shuts down gracefully on a signal, or after the duration given with -for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
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
	worker, err := workerlease.StartLeasing(ctx, ledger,
		workerlease.Options{WorkerType: "sitemap", LeaseInterval: 2 * time.Second},
		workerlease.Callbacks{LeaseAllocated: buildSitemap, Error: func(err error) { log.Print(err) }})
	if err != nil {
		return err
	}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, `<!doctype html><title>webapp</title><p>How the worker is doing: <a href="/healthz">/healthz</a>`)
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		s := worker.Status()
		if !s.Healthy() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = fmt.Fprintln(w, s)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
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
