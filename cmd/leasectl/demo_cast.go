package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// names of the demo's workers, in order of priority.
var castNames = []string{"north", "east", "south"}

// cast is the workers of the demo.
type cast struct {
	env      []string
	dir      string
	ledger   string
	log      string
	interval time.Duration

	players map[string]*player
	killed  string // who was killed, for good or to return
	// died gets an error when a worker ends that should not.
	died chan error
}

// player is a worker: a process of leasectl run.
type player struct {
	name  string
	cmd   *exec.Cmd
	pipe  io.Closer // the worker ends at once when this is closed
	ready chan struct{}
	done  chan struct{}

	mu       sync.Mutex
	expected bool // to end
	last     []byte
	file     *os.File
}

func newCast(env []string, dir, ledger, log string, interval time.Duration) *cast {
	return &cast{
		env: env, dir: dir, ledger: ledger, log: log, interval: interval,
		players: map[string]*player{}, died: make(chan error, len(castNames)+1),
	}
}

// top is the worker with the highest priority.
func (c *cast) top() string { return castNames[0] }

func (c *cast) priorityOf(name string) int {
	for p, n := range castNames {
		if n == name {
			return p
		}
	}
	return -1
}

func (c *cast) startAll() error {
	for _, name := range castNames {
		if err := c.start(name); err != nil {
			return err
		}
	}
	return nil
}

// start starts a worker.
func (c *cast) start(name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &player{name: name, ready: make(chan struct{}), done: make(chan struct{})}
	p.file, err = os.OpenFile(filepath.Join(c.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	p.cmd = exec.Command(self, "run",
		"--store", "sqlite:"+c.ledger, "--worker-type", demoType, "--instance-id", name,
		"--priority", strconv.Itoa(c.priorityOf(name)), "--every", c.interval.String(),
		"--stop-grace", "30ms", "--tether", "-v",
		"--", self, workName, c.log)
	p.cmd.Env, p.cmd.Stderr, p.cmd.WaitDelay = c.env, p, time.Second
	ownGroup(p.cmd)
	if p.pipe, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		_ = p.file.Close()
		return fmt.Errorf("start worker %s: %w", name, err)
	}
	c.players[name] = p
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // its state tells more
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.file.Close()
		if !p.expected {
			c.died <- fmt.Errorf("worker %s ended by itself: %v: %s", name, p.cmd.ProcessState, bytes.TrimSpace(p.last))
		}
	}()
	return nil
}

// Write takes the worker's log: it goes to a file, and tells when the worker is
// ready.
func (p *player) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes.Contains(b, []byte(" ready: ")) {
		select {
		case <-p.ready:
		default:
			close(p.ready)
		}
	}
	p.last = append(p.last[:0], b...)
	return p.file.Write(b)
}

// awaitReady waits until all workers know the store's time and compete.
func (c *cast) awaitReady(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for _, name := range castNames {
		select {
		case <-c.players[name].ready:
		case err := <-c.died:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return fmt.Errorf("worker %s is not ready after %v", name, limit)
		}
	}
	return nil
}

// expect notes that a worker is about to end.
func (p *player) expect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = true
}

// kill kills a worker with SIGKILL and returns its pid.
func (c *cast) kill(name string) int {
	p := c.players[name]
	c.killed = name
	p.expect()
	_ = p.cmd.Process.Kill()
	<-p.done
	delete(c.players, name)
	return p.cmd.Process.Pid
}

// end stops all workers and waits until they are gone: nicely, unless they take
// long or it is urgent.
func (c *cast) end(urgent <-chan struct{}) {
	timer := time.NewTimer(3 * time.Second)
	defer timer.Stop()
	for _, p := range c.players {
		p.expect()
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range c.players {
		select {
		case <-p.done:
			continue
		case <-timer.C:
			timer.Reset(0)
		case <-urgent:
		}
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	clear(c.players)
}
