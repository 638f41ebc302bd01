//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// peer is one way to have one of several workers work.
type peer interface {
	// name is what the table says, and what tells a worker's process which peer it is.
	name() string
	// serve starts what all workers share, with its files in a new directory.
	serve(ctx context.Context, dir string) (*service, error)
	// work takes part in an election until ctx ends. It then hands over in
	// order, and returns.
	work(ctx context.Context, n node) error
}

// service is what the workers of a peer share.
type service struct {
	address string
	// operations is how many there were, as the server counts them. It is nil if the workers
	// count.
	operations func(context.Context) (int64, error)
	stop       func()
}

// node is one worker.
type node struct {
	address string
	lease   string        // what workers compete for
	id      string        // of the worker
	bound   time.Duration // of the lease
	began   func()        // is called each time when it begins to work
	counted func()        // is called for each operation, if the service counts none
}

// errMissing is of a server whose program isn't installed.
var errMissing = errors.New("not installed")

// peers are all.
var peers = []peer{slotlease{}, etcd{}, kubernetes{}, redisLock{}}

// measure runs the cases one after the other, each with all peers side by side. Most of the
// time all of them wait.
func measure(ctx context.Context, o settings) ([]row, error) {
	root, err := os.MkdirTemp("", "slotlease-peers-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(root) }()
	served := map[peer]*service{}
	missing := map[peer]error{}
	for _, p := range peers {
		dir := filepath.Join(root, p.name())
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		s, err := p.serve(ctx, dir)
		if err != nil {
			missing[p] = err
			continue
		}
		served[p] = s
		defer s.stop()
	}
	var rows []row
	together := func(r row, f func(context.Context, *team, *row) error) {
		all := make([]row, len(peers))
		var done sync.WaitGroup
		for i, p := range peers {
			all[i] = r
			all[i].Peer = p.name()
			if err := missing[p]; err != nil {
				all[i].fail(err)
				continue
			}
			done.Go(func() {
				t := newTeam(p, served[p], r)
				defer t.close()
				if err := f(ctx, t, &all[i]); err != nil {
					all[i].fail(err)
				}
			})
		}
		done.Wait()
		rows = append(rows, all...)
	}
	for _, d := range o.bounds {
		together(row{Case: "failover", Bound: d}, func(ctx context.Context, t *team, r *row) error {
			return failover(ctx, t, r, o)
		})
	}
	together(row{Case: "handover", Bound: o.bounds[len(o.bounds)-1]}, func(ctx context.Context, t *team, r *row) error {
		return handover(ctx, t, r, o)
	})
	return rows, context.Cause(ctx)
}
