package main

import (
	"context"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/listen"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/runlog"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/sdnotify"
	"github.com/slotlease/slotlease/cmd/leasectl/internal/storeuri"
	"github.com/slotlease/slotlease/workerlease"
)

// outlook begins to show the worker to those outside: to whoever asks over HTTP, and to systemd. began is to
// be called with the worker, and over when nobody is to be told any more.
func (a *app) outlook(ctx context.Context, f *runFlags, t storeuri.Target, timing workerlease.Timing, log *runlog.Log) (began func(*workerlease.WorkerLease), over func(), err error) {
	var server *listen.Server
	if f.listen != "" {
		if server, err = a.serve(f, t, timing); err != nil {
			return nil, nil, err
		}
		log.Listening(server.Addr())
	}
	reporter := a.reporter(f, log)
	stopping := func() bool { return false }
	if reporter != nil {
		stopping = context.AfterFunc(ctx, reporter.Stopping)
	}
	began = func(w *workerlease.WorkerLease) {
		if server != nil {
			server.Show(w)
		}
		if reporter != nil {
			reporter.Report(w)
		}
	}
	over = func() {
		stopping()
		if reporter != nil {
			reporter.Close()
		}
		if server != nil {
			server.Close()
		}
	}
	return began, over, nil
}

// serve begins to answer requests about the worker.
func (a *app) serve(f *runFlags, t storeuri.Target, timing workerlease.Timing) (*listen.Server, error) {
	return listen.Start(listen.Options{
		Address: f.listen, Worker: workerlease.Worker{WorkerType: timing.Options.WorkerType, InstanceID: timing.Options.InstanceID},
		Store: t.Place(), Schedule: timing.Options.Schedule, Scrub: a.scrub,
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
