package app

import (
	"context"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/listen"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/notify"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/page"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/sdnotify"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/promlease"
)

// outlook shows workers to those outside: to whoever asks over HTTP, and to systemd.
type outlook struct {
	observer event.Observer         // may be nil
	told     *prometheus.CounterVec // notifications; nil: nobody reads it
	stale    prometheus.Gauge       // 1: a mistake kept files from being reloaded; nil: nobody reads it
	server   *listen.Server         // may be nil
	reporter *sdnotify.Reporter     // may be nil
	closing  []func()               // what ends it
}

// mostSeries is how many jobs of a process have series of their own in the metrics.
const mostSeries = 1000

// outlook begins to show the worker of a command, or several: see [listen.Options].
func (a *app) outlook(ctx context.Context, f *runFlags, log *runlog.Log, t storeuri.Target, o listen.Options) (*outlook, error) {
	out := &outlook{}
	if f.listen != "" {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		metrics, err := promlease.New(registry, promlease.Options{WorkerTypes: mostSeries})
		if err != nil {
			return nil, err
		}
		o.Address, o.Store, o.Scrub, o.Metrics = f.listen, t.Place(), a.scrub, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
		if f.page {
			// It has a handle of its own on the store: whoever looks takes no connection from the worker.
			shown := page.New(page.Options{Target: t, Access: f.pageAccess, Version: workerlease.Version(), Scrub: a.scrub})
			o.Page, out.closing = shown, append(out.closing, shown.Close)
		}
		if out.server, err = listen.Start(o); err != nil {
			return nil, err
		}
		out.closing = append(out.closing, out.server.Close)
		out.observer = metrics
		out.told = prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leasectl_notifications_total", Help: "Notifications of runs, by what became of them.",
		}, []string{"worker_type", "event", "outcome"})
		out.stale = prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "leasectl_reload_failed", Help: "1 while a mistake in the files of leasectl cron keeps its jobs as they were.",
		})
		registry.MustRegister(out.told, out.stale)
		log.Listening(out.server.Addr())
	}
	if out.reporter = a.reporter(f, log); out.reporter != nil {
		stopping := context.AfterFunc(ctx, out.reporter.Stopping)
		out.closing = append(out.closing, out.reporter.Close, func() { stopping() })
	}
	return out, nil
}

// show shows the worker of a command, once it has begun.
func (o *outlook) show(w *workerlease.WorkerLease) {
	if o.server != nil {
		o.server.Show(w)
	}
	if o.reporter != nil {
		o.reporter.Report(w)
	}
}

// reloaded shows whether the newest reload failed.
func (o *outlook) reloaded(failed bool) {
	if o.stale == nil {
		return
	}
	o.stale.Set(0)
	if failed {
		o.stale.Set(1)
	}
}

// counting counts the notifications about a worker type: each of its targets has a series from the beginning.
func (o *outlook) counting(workerType string, targets map[notify.Event]notify.Target) func(notify.Event, notify.Outcome, int) {
	if o.told == nil {
		return nil
	}
	count := func(of notify.Event, as notify.Outcome, n int) {
		o.told.WithLabelValues(workerType, string(of), string(as)).Add(float64(n))
	}
	for of := range targets {
		for _, as := range notify.Outcomes() {
			count(of, as, 0)
		}
	}
	return count
}

// close ends it: nobody is to be told any more.
func (o *outlook) close() {
	for _, end := range slices.Backward(o.closing) {
		end()
	}
}

// reporter tells systemd about the worker, if that wants it.
func (a *app) reporter(f *runFlags, log *runlog.Log) *sdnotify.Reporter {
	if f.once {
		return nil
	}
	socket, err := sdnotify.Dial(a.getenv)
	if err != nil {
		log.Unnotified(err)
	}
	if err != nil || socket == nil {
		return nil
	}
	return sdnotify.NewReporter(socket, a.scrub)
}
