//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"time"
)

// server starts a program that listens on a port of loopback, and waits until it does.
func server(ctx context.Context, dir, name, port string, args ...string) (stop func(), err error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, errMissing)
	}
	c := exec.Command(path, args...)
	var said bytes.Buffer
	c.Dir, c.Stdout, c.Stderr = dir, &said, &said
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	stop = func() {
		_ = c.Process.Kill()
		<-ended
	}
	for range 100 {
		if conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second); err == nil {
			_ = conn.Close()
			return stop, nil
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("%s ended: %s", name, said.String())
		case <-ctx.Done():
			stop()
			return nil, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	stop()
	return nil, fmt.Errorf("%s doesn't listen: %s", name, said.String())
}

// freePort is a port of loopback that nobody listens on now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
