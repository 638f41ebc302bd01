package peertest

import (
	"context"
	"net/http"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// HTTP is a kind of peers that serve HTTP. What a stranger asks for by Path is answered with Status.
type HTTP struct {
	Start  func(t *testing.T) *peer.Server
	Shared func(t testing.TB) string // its URL
	Kind   peer.Shared
	Path   string
	Status int
}

// Run tests what all kinds of peers promise.
func (h HTTP) Run(t *testing.T) {
	t.Helper()
	t.Run("a restarted server is at its address", func(t *testing.T) {
		t.Parallel()
		s := h.Start(t)
		h.answers(t, "http://"+s.Addr())
		RestartsAtItsAddress(t, s)
		h.answers(t, "http://"+s.Addr())
	})
	t.Run("a paused server is silent until resumed", func(t *testing.T) {
		t.Parallel()
		s := h.Start(t)
		IsSilentWhilePaused(t, s, func(ctx context.Context) error {
			_, err := h.ask(ctx, "http://"+s.Addr())
			return err
		})
	})
	t.Run("all tests share a server", func(t *testing.T) {
		t.Parallel()
		h.answers(t, IsShared(t, h.Shared))
	})
	t.Run("the server ends with its test binary", func(t *testing.T) {
		t.Parallel()
		EndsWithItsTestBinary(t, h.Kind)
	})
}

func (h HTTP) answers(t *testing.T, endpoint string) {
	t.Helper()
	if got, err := h.ask(t.Context(), endpoint); err != nil || got != h.Status {
		t.Errorf("GET %s%s = %d, %v, want %d", endpoint, h.Path, got, err, h.Status)
	}
}

func (h HTTP) ask(ctx context.Context, endpoint string) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+h.Path, http.NoBody)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}
