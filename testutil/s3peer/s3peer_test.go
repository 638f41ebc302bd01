package s3peer

import (
	"net/http"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) { peertest.Main(m, shared) }

func TestPeer(t *testing.T) {
	start := func(t *testing.T) *peer.Server { return Start(t).Server }
	peertest.HTTP{Start: start, Shared: Shared, Kind: shared, Path: "/none", Status: http.StatusNotFound}.Run(t)
}
