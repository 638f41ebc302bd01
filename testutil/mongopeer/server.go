package mongopeer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// startTime bounds how long the peer may take from its start to its first line.
const startTime = time.Minute

// Server is a peer of one's own: a process that can be killed, paused and
// restarted. Its methods must not be called at once.
type Server struct {
	t    testing.TB
	addr string
	data string

	cmd  *exec.Cmd
	pipe io.Closer
	done chan struct{}
	log  *tailBuffer
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
	s := &Server{t: t, addr: "127.0.0.1:0", data: t.TempDir(), log: &tailBuffer{}}
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
	s.cmd = exec.Command(path, append([]string{"-addr", s.addr, "-data", s.data}, flags...)...)
	s.cmd.Stderr = s.log
	isolate(s.cmd)
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start the test peer: %w", err)
	}
	s.pipe, s.done = stdin, make(chan struct{})

	lines := make(chan string, 1)
	go func() {
		defer close(s.done)
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		lines <- line
		_ = s.cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	select {
	case line := <-lines:
		u, err := url.Parse(strings.TrimSpace(line))
		if err != nil || u.Host == "" {
			s.kill()
			return fmt.Errorf("start the test peer: first line %.100q is no URI: %s", line, s.log)
		}
		s.addr = u.Host
		return nil
	case <-ctx.Done():
		s.kill()
		return fmt.Errorf("start the test peer: silent for %v: %s", startTime, s.log)
	}
}

// URI is where the peer listens. It stays the same when the peer is restarted.
func (s *Server) URI() string { return "mongodb://" + s.addr + "/" }

// Addr is the peer's host and port.
func (s *Server) Addr() string { return s.addr }

// Kill ends the peer with SIGKILL and waits until it is gone. A peer that is
// paused or dead may be killed, too.
func (s *Server) Kill() {
	s.t.Helper()
	s.kill()
}

func (s *Server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.pipe.Close()
	<-s.done
}

// Restart starts the peer again on the same port and data; it kills it first if
// it runs.
func (s *Server) Restart() {
	s.t.Helper()
	s.kill()
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
	if !canPause {
		s.t.Skip("this system can't pause a process")
	}
	if err := pause(s.cmd.Process); err != nil {
		s.t.Fatalf("pause the peer at %s: %v", s.addr, err)
	}
}

// Resume lets a paused peer go on (SIGCONT).
func (s *Server) Resume() {
	s.t.Helper()
	if err := resume(s.cmd.Process); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		s.t.Fatalf("resume the peer at %s: %v", s.addr, err)
	}
}

// tailBuffer keeps the last part of what is written to it.
type tailBuffer struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 16 << 10

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	if n := len(b.text) - tailSize; n > 0 {
		b.text = append(b.text[:0], b.text[n:]...)
	}
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
