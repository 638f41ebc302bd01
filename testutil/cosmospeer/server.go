package cosmospeer

import (
	"errors"
	"net"
	"os"
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
	pid     int // of the process; 0 if it was killed
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
		s.end()
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
	s.process, s.pid, s.addr = p, cmd.Process.Pid, addr
	return nil
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
	s.end()
}

// end kills the process, and removes what it left behind.
func (s *Server) end() {
	s.process.Kill()
	if s.clock != nil && s.pid != 0 {
		removeShared(s.pid)
	}
	s.pid = 0 // The system may give it to another.
}

// Restart starts the peer again on the same port and data; it kills it first if
// it runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.end()
	if err := s.run(); err != nil {
		s.t.Fatalf("restart the peer at %s: %v", s.addr, err)
	}
}

// RestartEmpty is Restart with everything lost: databases, containers and items.
func (s *Server) RestartEmpty() {
	s.t.Helper()
	s.end()
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
