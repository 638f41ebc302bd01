package beside

import (
	"context"

	"k8s.io/client-go/tools/leaderelection"
)

// Election is a Lease of Kubernetes', as client-go's leader election takes it. Callbacks are left empty, and ReleaseOnCancel
// is set: the Lease is renewed until the code under it has returned.
type Election struct {
	Config leaderelection.LeaderElectionConfig
}

// TryLock takes part until this worker leads, or ctx ends.
func (e Election) TryLock(ctx context.Context) (context.Context, func(), error) {
	// The end of ctx is that of the code's time, and not yet of the code.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	leads, ended := make(chan context.Context, 1), make(chan struct{})
	c := e.Config
	c.ReleaseOnCancel = true
	c.Callbacks = leaderelection.LeaderCallbacks{
		OnStartedLeading: func(ctx context.Context) { leads <- ctx },
		OnStoppedLeading: func() {},
	}
	elector, err := leaderelection.NewLeaderElector(c)
	if err != nil {
		stop()
		return nil, nil, err
	}
	go func() { defer close(ended); elector.Run(running) }()
	select {
	case leading := <-leads:
		held, end := context.WithCancel(leading)
		unhook := context.AfterFunc(ctx, end)
		return held, func() { unhook(); end(); stop(); <-ended }, nil
	case <-ctx.Done():
		stop()
		<-ended
		return nil, nil, ctx.Err()
	case <-ended:
		stop()
		return nil, nil, nil
	}
}
