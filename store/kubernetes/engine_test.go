package kubernetes

import (
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/kubepeer"
)

// The log has how uncertain the time was, for the figures in doc.go.
func TestWorkersLeadOneAtATime(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for seconds of real time")
	}
	t.Parallel()
	s := fresh(t, kubepeer.Shared(t))
	at := uri(s.namespace, s.kubeconfig, "worker") + "&oneServer=true"
	documenttest.Lead(t, 5*time.Second, func() store.Ledger { return opened(t, Options{URI: at}) })
}
