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
)

// serverBackend is a server as a process, with a proxy for each worker.
type serverBackend struct {
	of      serverStore
	server  server
	busy    sync.Mutex // held while the server is struck
	proxies map[string]*proxy
}

// server is one of testutil's peers.
type server interface {
	Addr() string
	End()
	Again() error
	Freeze() error
	Thaw() error
}

// proxy is one worker's way to the server.
type proxy struct {
	*toxiproxy.Proxy

	busy sync.Mutex // held while it is struck
}

// newServerBackend starts a server with its data in a new folder.
func newServerBackend(ctx context.Context, of serverStore, data string, workerTypes []workerType) (backend, error) {
	b := &serverBackend{of: of, proxies: map[string]*proxy{}}
	// A server that refuses root runs as nobody.
	err := errors.Join(os.Mkdir(data, 0o700), os.Chmod(filepath.Dir(data), 0o711))
	for name, value := range of.env {
		err = errors.Join(err, os.Setenv(name, value))
	}
	if err != nil {
		return nil, err
	}
	if b.server, err = of.start(ctx, data); err != nil {
		return nil, err
	}
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	for _, t := range workerTypes {
		for i := range perType {
			p := toxiproxy.NewProxy(api, t.instance(i), "127.0.0.1:0", b.server.Addr())
			if err := p.Start(); err != nil {
				b.close()
				return nil, fmt.Errorf("start proxy: %w", err)
			}
			b.proxies[t.instance(i)] = &proxy{Proxy: p}
		}
	}
	return b, nil
}

func (b *serverBackend) address(t workerType, index int) string {
	if p := b.proxies[t.instance(index)]; p != nil {
		return b.of.uri(p.Listen, t)
	}
	return b.of.uri(b.server.Addr(), t)
}

func (b *serverBackend) open(ctx context.Context, t workerType) (store.Ledger, error) {
	return b.of.open(ctx, b.of.uri(b.server.Addr(), t))
}

func (b *serverBackend) strike(f fault, t workerType, index int) (undo func() error, err error) {
	switch f.Kind {
	case killServer, stopServer:
		return b.strikeServer(f.Kind)
	default:
	}
	chosen := []*proxy{b.proxies[t.instance(index)]}
	if f.Crowd {
		chosen = slices.Collect(maps.Values(b.proxies))
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

// close ends the server.
func (b *serverBackend) close() {
	b.busy.Lock()
	defer b.busy.Unlock()
	b.server.End()
}

// strikeServer kills or pauses the server itself.
func (b *serverBackend) strikeServer(k kind) (undo func() error, err error) {
	if !b.busy.TryLock() {
		return nil, nil
	}
	heal := b.server.Again
	if k == killServer {
		b.server.End()
	} else {
		heal = b.server.Thaw
		if err := b.server.Freeze(); err != nil {
			b.busy.Unlock()
			return nil, err
		}
	}
	return func() error {
		defer b.busy.Unlock()
		return heal()
	}, nil
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
