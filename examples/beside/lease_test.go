package beside

import (
	"context"
	"encoding/json"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseObject is a Lease as an API server keeps it: an update of another version than the newest is a conflict. client-go's
// fake of a server takes any.
type leaseObject struct {
	sync.Mutex
	version int
	record  resourcelock.LeaderElectionRecord
}

// leaseLock is the lock of a worker on it.
type leaseLock struct {
	lease  *leaseObject
	worker string
	seen   int // the version that was read or written last
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *leaseLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.lease.Lock()
	defer l.lease.Unlock()
	if l.lease.version == 0 {
		return nil, nil, apierrors.NewNotFound(leases, "leader")
	}
	l.seen = l.lease.version
	record := l.lease.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *leaseLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.lease.Lock()
	defer l.lease.Unlock()
	if l.lease.version > 0 {
		return apierrors.NewAlreadyExists(leases, "leader")
	}
	return l.put(record)
}

func (l *leaseLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.lease.Lock()
	defer l.lease.Unlock()
	if l.seen != l.lease.version {
		return apierrors.NewConflict(leases, "leader", nil)
	}
	return l.put(record)
}

func (l *leaseLock) put(record resourcelock.LeaderElectionRecord) error {
	l.lease.version++
	l.seen, l.lease.record = l.lease.version, record
	return nil
}

func (l *leaseLock) RecordEvent(string) {}

func (l *leaseLock) Identity() string { return l.worker }

func (l *leaseLock) Describe() string { return "default/leader" }
