package azuritepeer

import (
	"context"
	"net/http"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) { peertest.Main(m, shared) }

// ask asks for a container that isn't there, without a signature.
func ask(ctx context.Context, endpoint string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/"+Account+"/none?restype=container", http.NoBody)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}

// want fails the test unless the server answers as Azure does: strangers may not know.
func want(t *testing.T, endpoint string) {
	t.Helper()
	if got, err := ask(t.Context(), endpoint); err != nil || got != http.StatusForbidden {
		t.Errorf("a container that isn't there: %d, %v, want 403", got, err)
	}
}

func TestARestartedServerIsAtItsAddress(t *testing.T) {
	t.Parallel()
	s := Start(t)
	want(t, s.Endpoint())
	peertest.RestartsAtItsAddress(t, s.Server)
	want(t, s.Endpoint())
}

func TestAPausedServerIsSilentUntilResumed(t *testing.T) {
	t.Parallel()
	s := Start(t)
	peertest.IsSilentWhilePaused(t, s.Server, func(ctx context.Context) error {
		_, err := ask(ctx, s.Endpoint())
		return err
	})
}

func TestAllTestsShareAServer(t *testing.T) {
	t.Parallel()
	want(t, peertest.IsShared(t, Shared))
}

func TestTheServerEndsWithItsTestBinary(t *testing.T) {
	t.Parallel()
	_ = Shared(t) // or skip
	peertest.EndsWithItsTestBinary(t)
}
