package natspeer

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) { peertest.Main(m, shared) }

// ask connects, and demands an answer to a ping.
func ask(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if at, has := ctx.Deadline(); has {
		_ = conn.SetDeadline(at)
	} else {
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	}
	if _, err := conn.Write([]byte("CONNECT {}\r\nPING\r\n")); err != nil {
		return err
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "PONG") {
			return nil
		}
	}
	return errors.New("no PONG")
}

func TestARestartedServerIsAtItsAddress(t *testing.T) {
	t.Parallel()
	s := Start(t, "")
	peertest.RestartsAtItsAddress(t, s.Server)
	if err := ask(t.Context(), s.Addr()); err != nil {
		t.Error(err)
	}
}

func TestAPausedServerIsSilentUntilResumed(t *testing.T) {
	t.Parallel()
	s := Start(t, "")
	peertest.IsSilentWhilePaused(t, s.Server, func(ctx context.Context) error { return ask(ctx, s.Addr()) })
}

func TestAllTestsShareAServer(t *testing.T) {
	t.Parallel()
	if err := ask(t.Context(), strings.Trim(strings.TrimPrefix(peertest.IsShared(t, Shared), "nats:"), "/")); err != nil {
		t.Error(err)
	}
}

func TestTheServerEndsWithItsTestBinary(t *testing.T) {
	t.Parallel()
	peertest.EndsWithItsTestBinary(t, shared)
}
