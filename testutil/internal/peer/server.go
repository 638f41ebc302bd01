package peer

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Kind is one kind of server.
type Kind struct {
	// Name is the name of the store in REQUIRE_STORES, Title that in messages.
	Name, Title string
	// Command makes the command that runs a server on an address, whose port is 0 or
	// that of an earlier run, with its data in a folder. If temporary, the server
	// removes the folder at the end of its standard input.
	Command func(addr, data string, temporary bool) (*exec.Cmd, error)
	// Killed removes what a process leaves behind when it is killed. Optional.
	Killed func(pid int)
}

// Unavailable ends a test that can't have its peer: it skips the test, or fails it
// if the environment variable REQUIRE_STORES names the store.
func (k Kind) Unavailable(t testing.TB, err error) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("REQUIRE_STORES"), ","), k.Name) {
		t.Fatalf("REQUIRE_STORES contains %s: %v", k.Name, err)
	}
	t.Skipf("no %s server: %v", k.Title, err)
}

// Server is a server that runs as a separate process. Its methods must not be called
// at once.
type Server struct {
	kind    Kind
	t       testing.TB // nil if the server outlives the tests
	addr    string
	data    string
	process *Process
	pid     int // of the process; 0 if it was killed
	log     Log
}

// Start starts a server with empty data, which ends with the test.
func (k Kind) Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{kind: k, t: t, addr: "127.0.0.1:0", data: t.TempDir()}
	if err := s.run(false); err != nil {
		k.Unavailable(t, err)
	}
	t.Cleanup(func() {
		s.end()
		if text := s.log.String(); t.Failed() && text != "" {
			t.Logf("log of the peer at %s:\n%s", s.addr, text)
		}
	})
	return s
}

// StartShared starts a server for all tests of a test binary. It has no cleanup:
// the server outlives every single test, sees the end of the test binary by its
// pipe, and then removes its data. Only Addr, Data and Process may be used.
func (k Kind) StartShared() (*Server, error) {
	data, err := os.MkdirTemp("", k.Name+"peer-")
	if err != nil {
		return nil, err
	}
	s := &Server{kind: k, addr: "127.0.0.1:0", data: data}
	if err := s.run(true); err != nil {
		_ = os.RemoveAll(data)
		return nil, err
	}
	return s, nil
}

// run starts the process on the server's port and data.
func (s *Server) run(temporary bool) error {
	cmd, err := s.kind.Command(s.addr, s.data, temporary)
	if err != nil {
		return err
	}
	p, addr, err := Start(cmd, &s.log)
	if err != nil {
		return err
	}
	s.process, s.pid, s.addr = p, p.PID(), addr
	return nil
}

// Addr is the server's host and port. It stays the same when the server is
// restarted.
func (s *Server) Addr() string { return s.addr }

// Data is the folder with the server's data.
func (s *Server) Data() string { return s.data }

// Process is the newest process of the server. It may have been killed.
func (s *Server) Process() *Process { return s.process }

// Kill ends the server with SIGKILL and waits until it is gone. A server that is
// paused or dead may be killed, too.
func (s *Server) Kill() {
	s.t.Helper()
	s.end()
}

// end kills the process, and removes what it left behind.
func (s *Server) end() {
	s.process.Kill()
	if s.kind.Killed != nil && s.pid != 0 {
		s.kind.Killed(s.pid)
	}
	s.pid = 0 // the system may give it to another
}

// Restart starts the server again on the same port and data; it kills it first if
// it runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.end()
	if err := s.run(false); err != nil {
		s.t.Fatalf("restart the peer at %s: %v", s.addr, err)
	}
}

// RestartEmpty is Restart with all data lost.
func (s *Server) RestartEmpty() {
	s.t.Helper()
	s.end()
	s.data = s.t.TempDir()
	s.Restart()
}

// Pause stops the server (SIGSTOP): its connections stay open, but it doesn't answer. It
// skips the test on systems that can't.
func (s *Server) Pause() {
	s.t.Helper()
	if !CanPause {
		s.t.Skip("this system can't pause a process")
	}
	if err := s.process.Pause(); err != nil {
		s.t.Fatalf("pause the peer at %s: %v", s.addr, err)
	}
}

// Resume lets a paused server go on (SIGCONT).
func (s *Server) Resume() {
	s.t.Helper()
	if err := s.process.Resume(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		s.t.Fatalf("resume the peer at %s: %v", s.addr, err)
	}
}
