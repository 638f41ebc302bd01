package mongopeer

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/slotlease/slotlease/testutil/internal/process"
)

// Server is a peer of one's own: a process that can be killed, paused and
// restarted. Its methods must not be called at once.
type Server struct {
	t    testing.TB
	addr string
	data string

	process *process.Process
	log     *process.Log
}

// Start starts a peer with empty data, which ends with the test. It skips the
// test if no peer can be had, or fails it if REQUIRE_STORES contains "mongo".
// MONGODB_URI has no say: somebody else's server can't be killed.
func Start(t testing.TB) *Server {
	t.Helper()
	path, err := binary()
	if err != nil {
		unavailable(t, err)
	}
	s := &Server{t: t, addr: "127.0.0.1:0", data: t.TempDir(), log: &process.Log{}}
	if err := s.run(path); err != nil {
		unavailable(t, err)
	}
	t.Cleanup(func() {
		s.Kill()
		if text := s.log.String(); t.Failed() && text != "" {
			t.Logf("log of the peer at %s:\n%s", s.addr, text)
		}
	})
	return s
}

// run starts the process and waits for the line that says where it listens.
func (s *Server) run(path string, flags ...string) error {
	cmd := exec.Command(path, append([]string{"-addr", s.addr, "-data", s.data}, flags...)...)
	p, addr, err := process.Start(cmd, s.log)
	if err != nil {
		return err
	}
	s.process, s.addr = p, addr
	return nil
}

// URI is where the peer listens. It stays the same when the peer is restarted.
func (s *Server) URI() string { return "mongodb://" + s.addr + "/" }

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
	path, err := binary()
	if err == nil {
		err = s.run(path)
	}
	if err != nil {
		s.t.Fatalf("restart the peer at %s: %v", s.addr, err)
	}
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
