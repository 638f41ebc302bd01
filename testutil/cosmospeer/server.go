package cosmospeer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/internal/process"
)

// Options says what peer to start. The zero value is one whose clock is right.
type Options struct {
	// ClockOffset is what the peer's clock is ahead of this machine's, behind if
	// negative. It is rounded to ms. It needs the program faketime, of the Debian
	// package of that name; without, no such peer can be had.
	ClockOffset time.Duration
}

// Server is a peer of one's own: a process that can be killed, paused and
// restarted. Its methods must not be called at once.
type Server struct {
	t     testing.TB
	clock []string // Environment that shifts the clock.
	addr  string
	data  string

	process *process.Process
	log     *process.Log
}

// Start starts a peer with empty data, which ends with the test. It skips the
// test if no peer can be had, or fails it if REQUIRE_STORES contains "cosmos".
// COSMOS_URI has no say: somebody else's server can't be killed.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	clock, err := shifted(o.ClockOffset)
	if err != nil {
		unavailable(t, err)
	}
	s := &Server{t: t, clock: clock, addr: "127.0.0.1:0", data: t.TempDir(), log: &process.Log{}}
	if err := s.run(); err != nil {
		unavailable(t, err)
	}
	t.Cleanup(func() {
		s.process.Kill()
		if text := s.log.String(); t.Failed() && text != "" {
			t.Logf("log of the peer at %s:\n%s", s.addr, text)
		}
	})
	return s
}

// run starts the process on the server's port and data.
func (s *Server) run(flags ...string) error {
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	cmd, err := Command(append([]string{"--host=" + host, "--port=" + port, "--data=" + s.data}, flags...)...)
	if err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), s.clock...)
	p, addr, err := process.Start(cmd, s.log)
	if err != nil {
		return err
	}
	s.process, s.addr = p, addr
	return nil
}

// shifted is the environment in which a program's time of day is off, but its
// timers, which use the monotonic clock, aren't. The program faketime only tells
// where its library is: run by it, the peer would be its child, and a signal
// wouldn't reach it.
func shifted(offset time.Duration) ([]string, error) {
	offset = offset.Round(time.Millisecond)
	if offset == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	library, err := exec.CommandContext(ctx, "faketime", "-m", "-f", "+0", "printenv", "LD_PRELOAD").Output()
	if err != nil {
		return nil, fmt.Errorf("a peer with a wrong clock needs faketime: %w", err)
	}
	return []string{
		"LD_PRELOAD=" + strings.TrimSpace(string(library)),
		fmt.Sprintf("FAKETIME=%+.3fs", offset.Seconds()),
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
		"NO_FAKE_STAT=1",
	}, nil
}

// URI is where the peer listens, in the form that store/cosmos takes, without
// database and container. It stays the same when the peer is restarted.
func (s *Server) URI() string { return "cosmos://" + s.addr + "/?insecureHTTP=true" }

// Addr is the peer's host and port.
func (s *Server) Addr() string { return s.addr }

// Kill ends the peer with SIGKILL and waits until it is gone. A peer that is
// paused or dead may be killed, too.
func (s *Server) Kill() {
	s.t.Helper()
	s.process.Kill()
}

// Restart starts the peer again on the same port and data; it kills it first if
// it runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.process.Kill()
	if err := s.run(); err != nil {
		s.t.Fatalf("restart the peer at %s: %v", s.addr, err)
	}
}

// RestartEmpty is Restart with everything lost: databases, containers and items.
func (s *Server) RestartEmpty() {
	s.t.Helper()
	s.process.Kill()
	s.data = s.t.TempDir()
	s.Restart()
}

// Pause stops the peer (SIGSTOP): its connections stay, but nobody answers. It
// skips the test on systems that can't.
func (s *Server) Pause() {
	s.t.Helper()
	if !process.CanPause {
		s.t.Skip("this system can't pause a process")
	}
	if err := s.process.Pause(); err != nil {
		s.t.Fatalf("pause the peer at %s: %v", s.addr, err)
	}
}

// Resume lets a paused peer go on (SIGCONT).
func (s *Server) Resume() {
	s.t.Helper()
	if err := s.process.Resume(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		s.t.Fatalf("resume the peer at %s: %v", s.addr, err)
	}
}
