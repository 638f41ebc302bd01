package failovers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/verify"
)

// team is the workers of a type, and what they did.
type team struct {
	workerType string
	mu         sync.Mutex
	turns      []*turn
	reports    []report
}

// work is what a worker does under a lease: it asks again and again whether the lease is valid.
func (m *team) work(who string) workerlease.Task {
	return func(ctx context.Context, l workerlease.Lease) error {
		x := &turn{who: who, token: l.Token}
		for ctx.Err() == nil {
			now := time.Now()
			if !l.Valid() { // If it is valid now, it was before.
				break
			}
			m.mu.Lock()
			if x.first.IsZero() {
				x.first = now
				m.turns = append(m.turns, x)
			}
			x.last = now
			m.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
		<-ctx.Done()
		return nil
	}
}

// observer notes what a worker reports of losses.
func (m *team) observer(who string) event.Observer {
	return event.ObserverFunc(func(e event.Event) {
		if back, is := e.(event.WentBack); is {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.reports = append(m.reports, report{who: who, at: time.Now(), seq: back.Seq})
		}
	})
}

// renewed says that work goes on by what was granted since a moment: by a new lease, or by an extended one.
func (m *team) renewed(from time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.turns {
		if x.first.After(from) || x.last.After(from.Add(within)) {
			return true
		}
	}
	return false
}

// judged judges a team once all is told that has to be, or after patience.
func (m *team) judged(l store.Ledger, failing time.Time, loses bool) (v verdict) {
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		records, findings, err := verified(l, m.workerType)
		if err != nil {
			v = verdict{untold: []string{fmt.Sprintf("the ledger can't be read: %v", err)}}
		} else {
			v = m.account(records, findings, failing, loses).judge()
		}
		if len(v.wrong) > 0 || len(v.untold) == 0 || time.Now().After(end) {
			return v
		}
	}
}

// account copies the turns and reports, since workers go on. The ledger was read before that, so each record in it has its turn or
// report among the copies.
func (m *team) account(records []store.Record, findings []verify.Finding, failing time.Time, loses bool) account {
	a := account{loses: loses, failing: failing, findings: findings, records: map[int64]store.Record{}}
	for _, r := range records {
		a.records[r.Seq] = r
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range m.turns {
		turn := *x
		a.turns = append(a.turns, &turn)
	}
	a.reports = append(a.reports, m.reports...)
	return a
}

// verified reads a ledger, and what verify finds in it.
func verified(l store.Ledger, workerType string) ([]store.Record, []verify.Finding, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	records, _, err := l.Tail(ctx, workerType, 256)
	if err != nil {
		return nil, nil, err
	}
	stamp, err := l.Now(ctx)
	if err != nil {
		return nil, nil, err
	}
	v := verify.New(verify.Options{WorkerType: workerType, Now: stamp.Time, Uncertainty: stamp.Skew + time.Second})
	for i := len(records) - 1; i >= 0; i-- {
		v.Add(records[i])
	}
	return records, v.Report().Findings, nil
}
