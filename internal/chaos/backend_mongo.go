//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/mongo"
)

// mongoBackend is a server with a proxy for each worker. Each worker type has its own collection, which keeps them small: the test
// server reads a whole collection to find its newest record.
type mongoBackend struct {
	server  *server
	proxies map[string]*proxy
	busy    sync.Mutex // held while the server itself is struck
}

// proxy is one worker's way to the server.
type proxy struct {
	*toxiproxy.Proxy

	busy sync.Mutex // held while it is struck
}

func newMongoBackend(dir string, s *spawner, workerTypes []workerType) (backend, error) {
	m := &mongoBackend{proxies: map[string]*proxy{}}
	var err error
	if m.server, err = startServer(s, filepath.Join(dir, "server")); err != nil {
		return nil, err
	}
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	for _, t := range workerTypes {
		for i := range perType {
			p := toxiproxy.NewProxy(api, t.instance(i), "127.0.0.1:0", m.server.addr)
			if err := p.Start(); err != nil {
				return nil, fmt.Errorf("start proxy: %w", err)
			}
			m.proxies[t.instance(i)] = &proxy{Proxy: p}
		}
	}
	return m, nil
}

func (m *mongoBackend) address(t workerType, index int) string {
	if p := m.proxies[t.instance(index)]; p != nil {
		return uri(p.Listen, t)
	}
	return uri(m.server.addr, t)
}

func uri(addr string, t workerType) string {
	return fmt.Sprintf("mongodb://%s/chaos?collection=leases-%s", addr, t.name)
}

func (m *mongoBackend) open(ctx context.Context, t workerType) (store.Ledger, error) {
	return mongo.Open(ctx, mongo.Options{URI: uri(m.server.addr, t)})
}

func (m *mongoBackend) close() {
	for _, p := range m.proxies {
		p.Stop()
	}
}

func (m *mongoBackend) strike(_ context.Context, f fault, t workerType, index int) (undo func() error, struck bool, err error) {
	if f.Kind == killServer || f.Kind == stopServer {
		undo, struck = m.strikeServer(f.Kind)
		return undo, struck, nil
	}
	chosen := []*proxy{m.proxies[t.instance(index)]}
	if f.Crowd {
		chosen = slices.Collect(maps.Values(m.proxies))
	}
	var undos []func() error
	undo = func() error {
		var errs []error
		for _, each := range undos {
			errs = append(errs, each())
		}
		return errors.Join(errs...)
	}
	for _, p := range chosen {
		if !p.busy.TryLock() {
			continue
		}
		heal, err := p.strike(f)
		if err != nil {
			p.busy.Unlock()
			return nil, false, errors.Join(err, undo())
		}
		undos = append(undos, func() error {
			defer p.busy.Unlock()
			return heal()
		})
	}
	return undo, len(undos) > 0, nil
}

// strikeServer kills or pauses the server itself.
func (m *mongoBackend) strikeServer(k kind) (undo func() error, struck bool) {
	if !m.busy.TryLock() {
		return nil, false
	}
	heal := m.server.run
	if k == killServer {
		m.server.kill()
	} else if heal, struck = m.server.pause(); !struck {
		m.busy.Unlock()
		return nil, false
	}
	return func() error {
		defer m.busy.Unlock()
		return heal()
	}, true
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

// makeFolder makes an empty folder for a server.
func makeFolder(path string) error { return os.MkdirAll(path, 0o700) }
