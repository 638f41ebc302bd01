package redispeer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/peer/peertest"
)

func TestMain(m *testing.M) { peertest.Main(m, shared) }

// ask sends a command, and is the reply of one line.
func ask(ctx context.Context, uri, command string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if line = strings.TrimSpace(line); strings.HasPrefix(line, "-") {
		err = fmt.Errorf("%s: %s", command, line)
	}
	return line, err
}

// want fails the test unless the command gets the reply.
func want(t *testing.T, uri, command, reply string) {
	t.Helper()
	if got, err := ask(t.Context(), uri, command); err != nil || got != reply {
		t.Errorf("%s = %q, %v, want %q", command, got, err, reply)
	}
}

func TestARestartedServerKeepsItsPortAndData(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{Flags: []string{"--maxclients", "17"}})
	want(t, s.URI(), "SET a 3", "+OK")
	peertest.RestartsAtItsAddress(t, s.Server)
	want(t, s.URI(), "INCR a", ":4")
	s.RestartEmpty()
	want(t, s.URI(), "INCR a", ":1")
}

func TestAPausedServerIsSilentUntilResumed(t *testing.T) {
	t.Parallel()
	s := Start(t, Options{})
	peertest.IsSilentWhilePaused(t, s.Server, func(ctx context.Context) error {
		_, err := ask(ctx, s.URI(), "PING")
		return err
	})
}

func TestAllTestsShareAServer(t *testing.T) {
	t.Parallel()
	want(t, peertest.IsShared(t, Shared), "PING", "+PONG")
}

func TestTheServerEndsWithItsTestBinary(t *testing.T) {
	t.Parallel()
	peertest.EndsWithItsTestBinary(t, shared)
}
