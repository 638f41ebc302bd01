package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Program is a server that isn't made for tests, such as PostgreSQL's: it doesn't say where it
// listens, and doesn't watch its standard input. A guard runs it: this test binary, started again,
// which ends all the server's processes and removes its data when the test binary is gone.
type Program struct {
	// Prepare are commands that make the data. They run in turn, once for each data folder.
	Prepare [][]string `json:",omitempty"`
	// Serve is the command that runs the server in the foreground.
	Serve []string
	// Ready is part of the line that the server logs, to its standard output or error, once it
	// answers. The locale is C.
	Ready string
	// Unprivileged has the user nobody run all commands if root runs the test, since many servers
	// refuse root.
	Unprivileged bool
	// Stop is the signal that lets the server remove what a killed one would leave outside of its
	// data. It is sent at the end of the test, and of the test binary. Default: none; it is killed.
	Stop syscall.Signal
}

// order is what a guard is told.
type order struct {
	Program
	Data string
}

// guardVariable holds the order of a guard, in its environment.
const guardVariable = "SLOTLEASE_PEER_GUARD"

// mostPorts is how many free ports a program is started with at most, since another program may
// take one before it listens.
const mostPorts = 5

// Find returns the path of a program: that on the PATH, or else the last in a folder that matches
// one of the patterns.
func Find(name string, folders ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, f := range folders {
		if found, _ := filepath.Glob(filepath.Join(f, name)); len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", err
}

// The ports of servers are below those that systems choose for connections, which is 32768 on Linux: while a server is
// restarted, none of its clients' connections, or anybody else's, may get its port.
const (
	lowestPort, highestPort = 15_000, 32_000
	mostDraws               = 100
)

// FreePort is a port of the loopback interface that nothing listens on now.
func FreePort() (int, error) {
	for n := 1; ; n++ {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		l, err := net.Listen("tcp", Local(port))
		if err == nil {
			return port, l.Close()
		}
		if n == mostDraws {
			return 0, err
		}
	}
}

// Local is the address of a port of the loopback interface.
func Local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// serve starts the guard, and waits until its server is ready on a port.
func (s *Server) serve(port int) error {
	if !canGuard {
		return fmt.Errorf("the server %s needs Linux: %w", s.kind.Title, errors.ErrUnsupported)
	}
	p, err := s.kind.Program(port, s.data)
	if err != nil {
		return err
	}
	told, err := json.Marshal(order{p, s.data})
	if err != nil {
		return err
	}
	s.log.Clear()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), guardVariable+"="+string(told))
	cmd.Stdout = &s.log
	cmd.WaitDelay = time.Second
	if err := s.begin(cmd, func() {}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for !strings.Contains(s.log.String(), p.Ready) {
		select {
		case <-s.done:
			s.end()
			return fmt.Errorf("%s has ended: %w", p.Serve[0], s.log.Reason())
		case <-ctx.Done():
			s.end()
			return fmt.Errorf("%s isn't ready after %v: %s", p.Serve[0], startTime, &s.log)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// folder makes a data folder that ends with the test. A program's may be given to another user, who
// can't reach those of t.TempDir.
func (s *Server) folder(t testing.TB) string {
	t.Helper()
	if s.kind.Program == nil {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("", s.kind.Name+"peer-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// finish ends the server with its test. A program's guard is given the time to stop it.
func (s *Server) finish() {
	if s.kind.Program != nil && s.stdin != nil {
		_ = s.stdin.Close()
		select {
		case <-s.done:
		case <-time.After(stopTime + time.Second):
		}
	}
	s.end()
}

// stopTime is how long a server may take to end after its signal Stop. Then it is killed.
const stopTime = 10 * time.Second
