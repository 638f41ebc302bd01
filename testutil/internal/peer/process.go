package peer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// startTime bounds how long a server may take from its start to its first line.
const startTime = time.Minute

// Process is a running server. Its methods must not be called at once.
type Process struct {
	cmd  *exec.Cmd
	pipe io.Closer
	done chan struct{}
}

// Start starts a server and waits for its first line, a URI, whose host it
// returns. What the server writes to its standard error goes to log. A server
// that ends, is silent for a minute, or writes something else is killed, and the
// error quotes the log.
func Start(cmd *exec.Cmd, log *Log) (p *Process, host string, err error) {
	cmd.Stderr = log
	isolate(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", fmt.Errorf("start the test peer: %w", err)
	}
	p = &Process{cmd: cmd, pipe: stdin, done: make(chan struct{})}

	lines := make(chan string, 1)
	go func() {
		defer close(p.done)
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		lines <- line
		_ = cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	select {
	case line := <-lines:
		u, err := url.Parse(strings.TrimSpace(line))
		if err != nil || u.Host == "" {
			p.Kill()
			return nil, "", fmt.Errorf("start the test peer: first line %.100q is no URI: %s", line, log)
		}
		return p, u.Host, nil
	case <-ctx.Done():
		p.Kill()
		return nil, "", fmt.Errorf("start the test peer: silent for %v: %s", startTime, log)
	}
}

// Kill ends the server with SIGKILL and waits until it is gone. A server that is
// paused or dead may be killed, too.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	_ = p.pipe.Close()
	<-p.done
}

// PID is the process id, which the system may give to another process after Kill.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Pause stops the server (SIGSTOP): its connections stay open, but it doesn't answer.
// The error is errors.ErrUnsupported unless CanPause.
func (p *Process) Pause() error { return pause(p.cmd.Process) }

// Resume lets a paused server go on (SIGCONT).
func (p *Process) Resume() error { return resume(p.cmd.Process) }

// Log keeps the last part of what is written to it. It is safe for concurrent
// use.
type Log struct {
	mu   sync.Mutex
	text []byte
}

const logSize = 16 << 10

// Write adds p to the log. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if n := len(l.text) - logSize; n > 0 {
		l.text = append(l.text[:0], l.text[n:]...)
	}
	return len(p), nil
}

// String is what was kept.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
