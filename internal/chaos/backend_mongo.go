//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/testutil/mongopeer"
)

// mongoBackend is a MongoDB-compatible server as a process, with a proxy for each worker.
// Each worker type has its own collection, which keeps them small: the test server reads
// a whole collection to find its newest record.
type mongoBackend struct {
	data    string     // its folder
	busy    sync.Mutex // held while the server is struck
	addr    string
	cmd     *exec.Cmd
	pipe    io.Closer // its end ends the server
	proxies map[string]*proxy
}

// proxy is one worker's way to the server.
type proxy struct {
	*toxiproxy.Proxy

	busy sync.Mutex // held while it is struck
}

func newMongoBackend(data string, workerTypes []workerType) (backend, error) {
	m := &mongoBackend{data: data, addr: "127.0.0.1:0", proxies: map[string]*proxy{}}
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	if err := m.run(); err != nil {
		return nil, err
	}
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	for _, t := range workerTypes {
		for i := range perType {
			p := toxiproxy.NewProxy(api, t.instance(i), "127.0.0.1:0", m.addr)
			if err := p.Start(); err != nil {
				return nil, fmt.Errorf("start proxy: %w", err)
			}
			m.proxies[t.instance(i)] = &proxy{Proxy: p}
		}
	}
	return m, nil
}

// run starts the server: on the same port and data if it ran before.
func (m *mongoBackend) run() error {
	path, err := mongopeer.Program()
	if err != nil {
		return err
	}
	m.cmd = exec.Command(path, "-addr", m.addr, "-data", m.data)
	if m.pipe, err = m.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := start(m.cmd); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	u, parseErr := url.Parse(strings.TrimSpace(line))
	if err = errors.Join(err, parseErr); err != nil {
		return fmt.Errorf("start the server in %s: first line %.100q: %w", m.data, line, err)
	}
	m.addr = u.Host
	return nil
}

func (m *mongoBackend) address(t workerType, index int) string {
	if p := m.proxies[t.instance(index)]; p != nil {
		return uri(p.Listen, t)
	}
	return uri(m.addr, t)
}

func uri(addr string, t workerType) string {
	return fmt.Sprintf("mongodb://%s/chaos?collection=leases-%s", addr, t.name)
}

func (m *mongoBackend) open(ctx context.Context, t workerType) (store.Ledger, error) {
	return mongo.Open(ctx, mongo.Options{URI: uri(m.addr, t)})
}

func (m *mongoBackend) strike(f fault, t workerType, index int) (undo func() error, err error) {
	switch f.Kind {
	case killServer, stopServer:
		return m.strikeServer(f.Kind), nil
	default:
	}
	chosen := []*proxy{m.proxies[t.instance(index)]}
	if f.Crowd {
		chosen = slices.Collect(maps.Values(m.proxies))
	}
	var undos []func() error
	undo = func() (err error) {
		for _, each := range undos {
			err = errors.Join(err, each())
		}
		return err
	}
	for _, p := range chosen {
		if !p.busy.TryLock() {
			continue
		}
		heal, err := p.strike(f)
		if err != nil {
			p.busy.Unlock()
			return nil, errors.Join(err, undo())
		}
		undos = append(undos, func() error {
			defer p.busy.Unlock()
			return heal()
		})
	}
	if len(undos) == 0 {
		return nil, nil
	}
	return undo, nil
}

// strikeServer kills or pauses the server itself.
func (m *mongoBackend) strikeServer(k kind) (undo func() error) {
	if !m.busy.TryLock() {
		return nil
	}
	if k == killServer {
		_ = m.cmd.Process.Kill()
		_ = m.pipe.Close()
		_ = m.cmd.Wait()
		return func() error {
			defer m.busy.Unlock()
			return m.run()
		}
	}
	h, ok := holdStopped(m.cmd.Process.Pid, 0)
	if !ok {
		m.busy.Unlock()
		return nil
	}
	return func() error {
		defer m.busy.Unlock()
		defer h.close()
		if !h.send(unix.SIGCONT) {
			return errors.New("the paused server is gone")
		}
		return nil
	}
}

// strike disturbs the connections of one worker.
func (p *proxy) strike(f fault) (undo func() error, err error) {
	toxic := ""
	switch f.Kind {
	case netDown:
		p.Stop()
		return p.Start, nil
	case netLatency:
		toxic = fmt.Sprintf(`{"name": "fault", "type": "latency", "attributes": {"latency": %d, "jitter": %d}}`, f.Delay.Milliseconds(), f.Delay.Milliseconds()/2)
	case netBlackhole:
		toxic = `{"name": "fault", "type": "timeout", "attributes": {"timeout": 0}}`
	case netReset:
		toxic = `{"name": "fault", "type": "reset_peer", "attributes": {"timeout": 0}}`
	default:
		return nil, fmt.Errorf("%s: no fault of the network", f.Kind)
	}
	if f.Kind != netLatency && f.Delay.Milliseconds()%2 == 0 {
		// Either requests or replies get lost: workers must survive both.
		toxic = strings.Replace(toxic, `"type"`, `"stream": "upstream", "type"`, 1)
	}
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		return nil, err
	}
	return func() error { return p.Toxics.RemoveToxic(context.Background(), "fault") }, nil
}
