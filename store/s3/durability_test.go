package s3

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/workerlease"
)

func TestAFailoverThatDatesAreTooCoarseForIsRefused(t *testing.T) {
	t.Parallel()
	for skew, want := range map[time.Duration]time.Duration{0: 8 * time.Second, time.Second: 14 * time.Second} {
		l := opened(t, Options{URI: "s3://jobs/a?region=eu-west-1", ServerSkew: skew})
		documenttest.Equal(t, "FailoverFloor()", l.FailoverFloor(), want)
		_, err := workerlease.NewClient(l, workerlease.ClientOptions{}).StartLeasing(t.Context(),
			workerlease.Options{WorkerType: "job", LeaseInterval: time.Minute, FailoverWithin: want - time.Millisecond},
			workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) {}})
		if !errors.Is(err, workerlease.ErrOptions) || !strings.Contains(err.Error(), "at least "+want.String()+" on this store, which knows the time too poorly") {
			t.Errorf("StartLeasing() with less than %v = %v, want it refused with the reason", want, err)
		}
	}
}

func TestDurabilityIsSaidInSentences(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"s3://jobs/a?region=eu-west-1", "s3://jobs/a?endpoint=https://s3.example"} {
		d := opened(t, Options{URI: uri}).Durability()
		for _, s := range []string{d.Crash, d.Power, d.Failover} {
			if !strings.HasSuffix(s, ".") || strings.Contains(s, "\n") {
				t.Errorf("Durability() of %s = %+v, want sentences", uri, d)
			}
		}
	}
}
