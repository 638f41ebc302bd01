package etcd

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/etcdpeer"
)

// The log has how uncertain the time was, for the figures in doc.go.
func TestWorkersLeadOneAtATime(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds of real time")
	}
	t.Parallel()
	uri := fresh(etcdpeer.Shared(t)) + "?oneMember=true"
	documenttest.Lead(t, 3*time.Second, func() store.Ledger { return opened(t, Options{URI: uri}) })
}
