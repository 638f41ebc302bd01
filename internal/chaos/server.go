//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// server is a MongoDB-compatible server as a process.
type server struct {
	spawner *spawner
	folder  string
	addr    string

	mu   sync.Mutex
	cmd  *exec.Cmd
	pipe io.Closer // its end ends the server
}

func startServer(s *spawner, folder string) (*server, error) {
	if err := makeFolder(folder); err != nil {
		return nil, err
	}
	m := &server{spawner: s, folder: folder, addr: "127.0.0.1:0"}
	return m, m.run()
}

// run starts the process: on the same port and data if it ran before.
func (m *server) run() error {
	path, err := mongopeer.Program()
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c := exec.Command(path, "-addr", m.addr, "-data", m.folder)
	pipe, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := m.spawner.start(c); err != nil {
		return err
	}
	m.cmd, m.pipe = c, pipe
	line, err := bufio.NewReader(out).ReadString('\n')
	u, parseErr := url.Parse(strings.TrimSpace(line))
	if err = errors.Join(err, parseErr); err != nil {
		return fmt.Errorf("start the server in %s: first line %.100q: %w", m.folder, line, err)
	}
	m.addr = u.Host
	return nil
}

func (m *server) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.cmd.Process.Kill()
	_ = m.pipe.Close()
	_ = m.spawner.wait(m.cmd)
}

// pause stops the process; resume lets it go on.
func (m *server) pause() (resume func() error, paused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := hold(m.cmd.Process.Pid, 0)
	if !ok {
		return nil, false
	}
	if !h.stop() {
		h.close()
		return nil, false
	}
	return func() error {
		defer h.close()
		if !h.send(unix.SIGCONT) {
			return errors.New("the paused server is gone")
		}
		return nil
	}, true
}
