package azuritepeer

import (
	"net/http"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) { peertest.Main(m, shared) }

// Strangers may not know that there is no such container.
func TestPeer(t *testing.T) {
	start := func(t *testing.T) *peer.Server { return Start(t).Server }
	peertest.HTTP{Start: start, Shared: Shared, Kind: shared, Path: "/" + Account + "/none?restype=container", Status: http.StatusForbidden}.Run(t)
}
