package s3

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/s3peer"
)

func TestTwoWorkersLeadOneAtATimeInTheSlotsOfTheServersTime(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds of real time")
	}
	t.Parallel()
	uri := uriOf(s3peer.Shared(t), newBucket()+"/jobs")
	ready(t, Options{URI: uri})
	// The time is known within a second or so, and work surely inside a slot needs longer ones.
	uncertain := documenttest.Lead(t, 6*time.Second, func() store.Ledger { return opened(t, Options{URI: uri}) })
	// What FailoverFloor goes by.
	if most := 2*defaultSkew + 1500*time.Millisecond; uncertain > most {
		t.Errorf("the uncertainty of store time = ±%v, want at most %v", uncertain, most)
	}
}
