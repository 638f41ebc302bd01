//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// kubernetes is client-go's leader election, with its periods in the proportion of its defaults:
// 15, 10 and 2 s. There is no API server, but one object of this process, which answers over
// HTTP as one does: real servers, which write to etcd, take longer.
type kubernetes struct{}

func (kubernetes) name() string { return "client-go" }

func (kubernetes) serve(context.Context, string) (*service, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	leases := &leases{stored: map[string]coordination.Lease{}}
	s := &http.Server{Handler: leases, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	return &service{
		address:    "http://" + l.Addr().String(),
		operations: func(context.Context) (int64, error) { return leases.requests.Load(), nil },
		stop:       func() { _ = s.Close() },
	}, nil
}

func (kubernetes) work(ctx context.Context, n node) error {
	c, err := client.NewForConfig(&rest.Config{Host: n.address, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: meta.ObjectMeta{Namespace: "default", Name: n.lease}, Client: c,
				LockConfig: resourcelock.ResourceLockConfig{Identity: n.id},
			},
			LeaseDuration: n.bound, RenewDeadline: n.bound * 2 / 3, RetryPeriod: n.bound * 2 / 15, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { n.began() },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
	}
	return nil
}

// leases stand in for an API server, as far as leader election uses one: they get, create and
// update, and refuse an update of a version that isn't the newest.
type leases struct {
	requests atomic.Int64
	mu       sync.Mutex
	stored   map[string]coordination.Lease
	version  int
}

func (l *leases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.requests.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	refuse := func(err *apierrors.StatusError) {
		err.ErrStatus.TypeMeta = meta.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer(int(err.ErrStatus.Code), err.ErrStatus)
	}
	resource := coordination.Resource("leases")
	var body coordination.Lease
	name := path.Base(r.URL.Path)
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			refuse(apierrors.NewBadRequest(err.Error()))
			return
		}
		name = body.Name
	}
	old, found := l.stored[name]
	switch {
	case r.Method == http.MethodPost && found:
		refuse(apierrors.NewAlreadyExists(resource, name))
	case r.Method != http.MethodPost && !found:
		refuse(apierrors.NewNotFound(resource, name))
	case r.Method == http.MethodPut && body.ResourceVersion != old.ResourceVersion:
		refuse(apierrors.NewConflict(resource, name, errors.New("another version is stored")))
	case r.Method == http.MethodGet:
		answer(http.StatusOK, old)
	default:
		l.version++
		body.ResourceVersion = strconv.Itoa(l.version)
		body.TypeMeta = meta.TypeMeta{APIVersion: coordination.SchemeGroupVersion.String(), Kind: "Lease"}
		l.stored[name] = body
		answer(http.StatusOK, body)
	}
}
