package app

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/listen"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/sdnotify"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/supervise"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/promlease"
)

// outlook begins to show the worker of a command to those outside: to whoever asks over HTTP, and to systemd.
// over is to be called when nobody is to be told any more.
func (a *app) outlook(ctx context.Context, f *runFlags, t storeuri.Target, timing workerlease.Timing, log *runlog.Log, command *supervise.Command) (over func(), err error) {
	var server *listen.Server
	if f.listen != "" {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		metrics, err := promlease.New(registry, promlease.Options{})
		if err != nil {
			return nil, err
		}
		if server, err = a.serve(f, t, timing, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})); err != nil {
			return nil, err
		}
		command.Observer = metrics
		log.Listening(server.Addr())
	}
	reporter := a.reporter(f, log)
	stopping := func() bool { return false }
	if reporter != nil {
		stopping = context.AfterFunc(ctx, reporter.Stopping)
	}
	command.Began = func(w *workerlease.WorkerLease) {
		if server != nil {
			server.Show(w)
		}
		if reporter != nil {
			reporter.Report(w)
		}
	}
	return func() {
		stopping()
		if reporter != nil {
			reporter.Close()
		}
		if server != nil {
			server.Close()
		}
	}, nil
}

// serve begins to answer requests about the worker.
func (a *app) serve(f *runFlags, t storeuri.Target, timing workerlease.Timing, metrics http.Handler) (*listen.Server, error) {
	return listen.Start(listen.Options{
		Address: f.listen, Worker: workerlease.Worker{WorkerType: timing.Options.WorkerType, InstanceID: timing.Options.InstanceID},
		Store: t.Place(), Schedule: timing.Options.Schedule, Scrub: a.scrub, Metrics: metrics,
	})
}

// reporter tells systemd about the worker, if that wants it.
func (a *app) reporter(f *runFlags, log *runlog.Log) *sdnotify.Reporter {
	if f.once {
		return nil
	}
	socket, err := sdnotify.Dial(a.getenv)
	switch {
	case err != nil:
		log.Unnotified(err)
		return nil
	case socket == nil:
		return nil
	}
	return sdnotify.NewReporter(socket, a.scrub)
}
