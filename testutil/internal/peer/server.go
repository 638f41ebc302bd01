package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// Kind is one kind of server.
type Kind struct {
	// Name is the name of the store in REQUIRE_STORES, Title that in messages.
	Name, Title string
	// Command makes the command that runs a server on an address, whose port is 0 or
	// that of an earlier run, with its data in a folder. If temporary, the server
	// removes the folder at the end of its standard input.
	Command func(addr, data string, temporary bool) (*exec.Cmd, error)
	// Program says, in place of Command, what to run on a port of 127.0.0.1 with the data in a
	// folder, which is empty at first.
	Program func(port int, data string) (Program, error)
	// Killed removes what a process leaves behind outside of its data when it is killed. Optional.
	Killed func(pid int, data string)
}

// Unavailable ends a test that can't have its peer: it skips the test, or fails it
// if the environment variable REQUIRE_STORES names the store.
func (k Kind) Unavailable(t testing.TB, err error) {
	t.Helper()
	if suites.Required(k.Name) {
		t.Fatalf("REQUIRE_STORES contains %s: %v", k.Name, err)
	}
	t.Skipf("no %s server: %v", k.Title, err)
}

// Server is a server that runs as a separate process. Its methods must not be called
// at once.
type Server struct {
	kind Kind
	t    testing.TB // nil if the server outlives the tests
	port int        // 0 before its first start
	data string
	log  Log

	// The newest process, its standard input, and its end.
	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	ended bool
}

// startTime bounds how long a server may take from its start to its first line: a minute was too little for
// initdb on a machine whose load was 30.
const startTime = 4 * time.Minute

// portTime is how long a restarted server waits for its port, which another program may have taken
// meanwhile, usually for a single connection.
const portTime = 20 * time.Second

// Start starts a server with empty data, which ends with the test. The quick run skips the test, unless the server is the
// main store's: see package suites.
func (k Kind) Start(t testing.TB) *Server {
	t.Helper()
	suites.Server(t, k.Name)
	s := &Server{kind: k, t: t}
	s.data = s.folder(t)
	if err := s.run(false); err != nil {
		k.Unavailable(t, err)
	}
	t.Cleanup(func() {
		s.finish()
		if text := s.log.String(); t.Failed() && text != "" {
			t.Logf("log of the peer at %s:\n%s", s.Addr(), text)
		}
	})
	return s
}

// Shared is a server for all tests of a test binary.
type Shared struct {
	kind  Kind
	start func() (*Server, error)
}

// Share returns a server that the first test which asks for it starts. It has no cleanup:
// the server outlives every single test, sees the end of the test binary by its
// pipe, and then removes its data. Only Addr, Data, PID and Freeze may be used.
func (k Kind) Share() Shared { return Shared{k, sync.OnceValues(k.StartShared)} }

// Server starts the server, unless it runs. Where there can be none, it skips the test, or fails it, as [Kind.Start] does.
func (s Shared) Server(t testing.TB) *Server {
	t.Helper()
	suites.Server(t, s.kind.Name)
	server, err := s.start()
	if err != nil {
		s.kind.Unavailable(t, err)
	}
	return server
}

// Start is Server for a harness that isn't a test.
func (s Shared) Start() (*Server, error) { return s.start() }

// StartShared is [Shared.Start] for a kind that is known late. Each call starts a server.
func (k Kind) StartShared() (*Server, error) {
	data, err := os.MkdirTemp("", k.Name+"peer-")
	if err != nil {
		return nil, err
	}
	s := &Server{kind: k, data: data}
	if err := s.run(true); err != nil {
		_ = os.RemoveAll(data)
		return nil, err
	}
	return s, nil
}

// StartIn starts a server for a harness that isn't a test, with its data in a folder that is empty.
// The folder is the harness's to remove, but the server may do so, too, if the harness dies. Only
// Addr, Data, PID, End, Again, Freeze and Thaw may be used.
func (k Kind) StartIn(data string) (*Server, error) {
	s := &Server{kind: k, data: data}
	if err := s.run(false); err != nil {
		return nil, err
	}
	return s, nil
}

// run starts the server on its data and its port or, at first, on a free one, and waits until it is ready.
func (s *Server) run(temporary bool) error {
	serve := s.serve
	if s.kind.Program == nil {
		serve = func(port int) error { return s.command(port, temporary) }
	}
	if s.port != 0 {
		return serve(s.port)
	}
	for n := 1; ; n++ {
		port, err := FreePort()
		if err != nil {
			return err
		}
		if err = serve(port); err == nil {
			s.port = port
			return nil
		}
		if n == mostPorts || !errors.Is(err, ErrPortTaken) {
			return err
		}
		s.log.Clear()
	}
}

// command starts the process on a port and the server's data, and waits for its first line, a
// URI, with its address. A process that ends, is silent for a minute, or writes
// something else is killed, and the error quotes its log.
func (s *Server) command(port int, temporary bool) error {
	cmd, err := s.kind.Command(Local(port), s.data, temporary)
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	lines := make(chan string, 1)
	if err := s.begin(cmd, func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		lines <- line
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	select {
	case line := <-lines:
		u, err := url.Parse(strings.TrimSpace(line))
		if err != nil || u.Host != Local(port) {
			s.end()
			return fmt.Errorf("start the test peer: first line %.100q is no URI at its address: %w", line, s.log.Reason())
		}
		return nil
	case <-ctx.Done():
		s.end()
		return fmt.Errorf("start the test peer: silent for %v: %s", startTime, &s.log)
	}
}

// begin starts a process, which sees the end of this one by its standard input. Its standard error is logged. read runs
// before it is waited for.
func (s *Server) begin(cmd *exec.Cmd, read func()) error {
	cmd.Stderr = &s.log
	isolate(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the test peer: %w", err)
	}
	done := make(chan struct{})
	s.cmd, s.stdin, s.done, s.ended = cmd, stdin, done, false
	go func() {
		defer close(done)
		read()
		_ = cmd.Wait()
	}()
	return nil
}

// Addr is the server's host and port. It stays the same when the server is
// restarted.
func (s *Server) Addr() string { return Local(s.port) }

// Data is the folder with the server's data.
func (s *Server) Data() string { return s.data }

// PID is the id of the newest process, or that of a Program's guard, which the system may give to
// another after Kill.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill ends the server, all its processes, with SIGKILL and waits until it is gone. A server that
// is paused or dead may be killed, too.
func (s *Server) Kill() {
	s.t.Helper()
	s.end()
}

// End is Kill for a harness that isn't a test.
func (s *Server) End() { s.end() }

// end kills the process, and removes what it left behind.
func (s *Server) end() {
	if s.kind.Program != nil && !s.over() {
		killBelow(s.PID())
	}
	_ = s.cmd.Process.Kill()
	_ = s.stdin.Close()
	<-s.done
	if s.kind.Killed != nil && !s.ended {
		s.kind.Killed(s.PID(), s.data)
	}
	s.ended = true // The system may give its id to another.
}

// over reports whether the process has ended.
func (s *Server) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Restart starts the server again on the same port and data; it kills it first if
// it runs. It waits up to 20 s for the port.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.Again(); err != nil {
		s.t.Fatalf("restart the peer at %s: %v", s.Addr(), err)
	}
}

// Again is Restart for a harness that isn't a test.
func (s *Server) Again() error {
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), portTime)
	defer cancel()
	err := s.run(false)
	for errors.Is(err, ErrPortTaken) && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		s.log.Clear()
		err = s.run(false)
	}
	return err
}

// RestartEmpty is Restart with all data lost.
func (s *Server) RestartEmpty() {
	s.t.Helper()
	s.end()
	s.data = s.folder(s.t)
	s.Restart()
}

// Freeze is Pause for a shared server, and for a harness that isn't a test. The error is
// errors.ErrUnsupported unless CanPause.
func (s *Server) Freeze() error {
	if s.kind.Program != nil {
		return pauseBelow(s.PID())
	}
	return pause(s.cmd.Process)
}

// Pause stops the server, all its processes (SIGSTOP): its connections stay open, but it doesn't answer. It
// skips the test on systems that can't.
func (s *Server) Pause() {
	s.t.Helper()
	if !CanPause {
		s.t.Skip("this system can't pause a process")
	}
	if err := s.Freeze(); err != nil {
		s.t.Fatalf("pause the peer at %s: %v", s.Addr(), err)
	}
}

// Resume lets a paused server go on (SIGCONT).
func (s *Server) Resume() {
	s.t.Helper()
	if err := s.Thaw(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		s.t.Fatalf("resume the peer at %s: %v", s.Addr(), err)
	}
}

// Thaw is Resume for a harness that isn't a test.
func (s *Server) Thaw() error {
	if s.kind.Program != nil {
		return resumeBelow(s.PID())
	}
	return resume(s.cmd.Process)
}
