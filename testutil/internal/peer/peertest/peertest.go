// Package peertest tests what all kinds of peers promise.
package peertest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// parentEnv makes the test binary start a peer, print where it is, and wait to be
// killed.
const parentEnv = "PEER_TEST_PARENT"

// Main runs the tests, or plays the parent of the shared peer.
func Main(m *testing.M, shared peer.Shared) {
	if mode := os.Getenv(parentEnv); mode != "" {
		fmt.Println("error:", parent(mode, shared))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// parent returns only if it fails.
func parent(mode string, shared peer.Shared) error {
	s, err := shared.Start()
	if err != nil {
		return err
	}
	if mode == "paused" {
		if err := s.Freeze(); err != nil {
			return err
		}
	}
	fmt.Println(s.Addr(), s.Data())
	select {}
}

// FirstLineOfKilled runs the test binary with an addition to its environment that makes it play a
// parent of peers, kills it when it has printed a line, and returns that.
func FirstLineOfKilled(t *testing.T, env ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), env...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		t.Fatalf("first line = %q, %v, want one that ends", line, err)
	}
	return strings.TrimSpace(line)
}

// EndsWithItsTestBinary checks that the shared peer and its data are gone soon
// after its test binary was killed, even if the peer is paused.
func EndsWithItsTestBinary(t *testing.T, shared peer.Shared) {
	shared.Server(t) // or skip the test
	for _, mode := range []string{"running", "paused"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "paused" && !peer.CanPause {
				t.Skip("this system can't pause a process")
			}
			line := FirstLineOfKilled(t, parentEnv+"="+mode)
			addr, data, ok := strings.Cut(line, " ")
			if _, port, err := net.SplitHostPort(addr); !ok || err != nil || port == "" {
				t.Fatalf("first line = %q, want address and folder", line)
			}
			// A real process ends in real time.
			ctx := suites.Deadline(t)
			for ; ; time.Sleep(10 * time.Millisecond) {
				conn, dialErr := net.DialTimeout("tcp", addr, time.Second)
				if dialErr == nil {
					_ = conn.Close()
				}
				_, statErr := os.Stat(data)
				if dialErr != nil && os.IsNotExist(statErr) {
					return
				}
				if ctx.Err() != nil {
					t.Fatalf("long after its test binary was killed: dial %s = %v, stat %s = %v, want both gone", addr, dialErr, data, statErr)
				}
			}
		})
	}
}

// IsShared checks that all calls give the URI of one peer, which it returns.
func IsShared(t *testing.T, uri func(testing.TB) string) string {
	t.Helper()
	first := uri(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := uri(t); got != first {
				t.Errorf("URI() = %q, want %q", got, first)
			}
		})
	}
	wg.Wait()
	return first
}

// RestartsAtItsAddress kills a peer, and restarts it.
func RestartsAtItsAddress(t *testing.T, s *peer.Server) {
	t.Helper()
	addr := s.Addr()
	s.Kill()
	if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		_ = conn.Close()
		t.Errorf("%s answers after Kill, want it refused", addr)
	}
	s.Restart()
	if got := s.Addr(); got != addr {
		t.Errorf("Addr() after Restart = %q, want %q", got, addr)
	}
}

// IsSilentWhilePaused pauses a peer, and resumes it. ping asks it for anything.
func IsSilentWhilePaused(t *testing.T, s *peer.Server, ping func(ctx context.Context) error) {
	t.Helper()
	within := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return ping(ctx)
	}
	if err := within(time.Minute); err != nil {
		t.Fatalf("ping = %v, want nil", err)
	}
	s.Pause()
	if err := within(300 * time.Millisecond); err == nil {
		t.Error("ping of a paused peer = nil, want a timeout: the signal must reach it")
	}
	s.Resume()
	if err := within(time.Minute); err != nil {
		t.Errorf("ping after Resume = %v, want nil", err)
	}
}

// StopsProgressWhilePaused pauses a peer while it is doing something that takes it a second, and
// resumes it.
func StopsProgressWhilePaused(t *testing.T, s *peer.Server, second func(ctx context.Context) error) {
	t.Helper()
	ctx := suites.Deadline(t)
	ended := make(chan error, 1)
	go func() { ended <- second(ctx) }()
	time.Sleep(500 * time.Millisecond)
	s.Pause()
	select {
	case err := <-ended:
		t.Errorf("it ended with %v while the peer was paused, want it stopped: the signal must reach all processes", err)
		ended <- err
	case <-time.After(1500 * time.Millisecond):
	}
	s.Resume()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v after Resume, want nil", err)
	}
}
