package kubernetes

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/restarts"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/kubepeer"
)

// The API server is killed; its etcd server isn't, which store/etcd shows. SLOTLEASE_LINEAR_OPS sets the number of
// operations, of which a fortieth is checked here, as on the other servers in internal/linear.
func TestTheLedgerIsLinearizableWhileItsServerIsKilled(t *testing.T) {
	t.Parallel()
	all, err := workload.Operations(36_000)
	must(t, "Operations()", err)
	first, least := 0, 3
	if race.Enabled || testing.Short() {
		first, least, all = 2, 1, all/10
	}
	server := kubepeer.Start(t)
	s := fresh(t, server.Kubeconfig())
	o := &outage{Server: restarted{server, t}}
	var ledgers []store.Ledger
	for range 6 {
		ledgers = append(ledgers, &patient{s.open(t, "worker"), o})
	}
	var sum linear.Result
	kills, after := 0, 0
	for i := first; sum.Searched < all/40 || i < first+least; i++ {
		h, n := restarts.Round(t.Context(), ledgers, i, inOrder(i), o)
		result, err := h.Check(time.Minute)
		if err != nil {
			t.Fatalf("round %d: Check() = %v: %v", i, err, result.Violations)
		}
		sum.Add(result)
		if after += n; restarts.Disturbed(i) {
			kills++
		}
	}
	t.Logf("%d operations checked, %d of unknown outcome, %d conflicts, %d kills, %d answers after them", sum.Searched, sum.Unknown, sum.Conflicts, kills, after)
	if sum.Unknown == 0 || sum.Conflicts == 0 || after == 0 {
		t.Errorf("%d unknown outcomes, %d conflicts, %d answers after %d kills, want some of each", sum.Unknown, sum.Conflicts, after, kills)
	}
}

// outage is a server that callers wait for while it is killed: an API server takes seconds to start, in which clients would
// use up all of their calls.
type outage struct {
	restarts.Server
	mu   sync.Mutex
	over chan struct{} // nil while the server runs
}

func (o *outage) Kill() {
	o.mu.Lock()
	o.over = make(chan struct{})
	o.mu.Unlock()
	o.Server.Kill()
}

func (o *outage) Restart() {
	o.Server.Restart()
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.over)
	o.over = nil
}

// wait waits after a call that had no answer.
func (o *outage) wait(err error) {
	o.mu.Lock()
	over := o.over
	o.mu.Unlock()
	if err != nil && over != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
		<-over
	}
}

// patient is a ledger whose calls without an answer return when the server is back.
type patient struct {
	store.Ledger
	o *outage
}

func (p *patient) Append(ctx context.Context, r store.Record) error {
	err := p.Ledger.Append(ctx, r)
	p.o.wait(err)
	return err
}

func (p *patient) Get(ctx context.Context, workerType string, seq int64) (store.Record, error) {
	r, err := p.Ledger.Get(ctx, workerType, seq)
	p.o.wait(err)
	return r, err
}

func (p *patient) Tail(ctx context.Context, workerType string, limit int) ([]store.Record, store.Stamp, error) {
	records, stamp, err := p.Ledger.Tail(ctx, workerType, limit)
	p.o.wait(err)
	return records, stamp, err
}

func (p *patient) Trim(ctx context.Context, workerType string, before int64) (int, error) {
	n, err := p.Ledger.Trim(ctx, workerType, before)
	p.o.wait(err)
	return n, err
}

// inOrder is what the clients do in a round: they append in order, since a tail is made of several lists while somebody
// appends all the time.
func inOrder(i int) workload.Plan {
	p := restarts.Plan(i)
	p.InOrder = true
	return p
}
