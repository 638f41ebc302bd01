package mongo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/slotlease/slotlease/store/internal/documenttest"
)

// The driver remembers how slow the network was for as long as 10 s.
func TestANetworkThatIsFastAgainIsUsedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := serve(t, &fakeServer{})
		f.slow.Store(int64(400 * time.Millisecond))
		l := f.open(Options{})
		must(t, "Now() over a slow network", documenttest.ErrorOf(l.Now(t.Context())))
		f.slow.Store(0)
		wantErr(t, "Now() with less time than it took before", documenttest.ErrorOf(l.Now(within(t, 250*time.Millisecond))), nil)
	})
}

// A caller's client may hold the driver up, by a monitor of its own.
func TestAnOperationEndsWithItsContextThoughTheDriverIsHeldUp(t *testing.T) {
	t.Parallel()
	f := serve(t, &fakeServer{})
	free := make(chan struct{})
	defer close(free)
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://" + f.addr).SetDialer(network).SetMonitor(&event.CommandMonitor{Started: func(context.Context, *event.CommandStartedEvent) { <-free }}))
	must(t, "Connect()", err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	l := open(t, Options{Client: client})
	began := time.Now()
	_, err = l.Now(within(t, 100*time.Millisecond))
	if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > patience/2 {
		t.Errorf("Now() of a driver that is held up = %v after %v, want %v after 100 ms and a moment", err, took, context.DeadlineExceeded)
	}
}

func TestTheEndOfADeadlineIsNoCancellation(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]bool{"of the first operation": true, "of a later one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := serve(t, &fakeServer{})
				l := f.open(Options{})
				if !first {
					_, _, err := l.Tail(t.Context(), "job", 1)
					must(t, "Tail()", err)
				}
				f.slow.Store(int64(2 * time.Second))
				_, _, err := l.Tail(within(t, 50*time.Millisecond), "job", 1)
				if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					t.Errorf("Tail() past its deadline = %v, want %v, and no cancellation", err, context.DeadlineExceeded)
				}
			})
		})
	}
}
