package failovers

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Switch is an address that leads to a server, and how to lead it to another one: as that of a service, or of a pooler's
// configuration, does. Connections that were made before are cut.
func Switch(t *testing.T, server string) (addr string, to func(server string)) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &switched{server: server}
	var passing sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		s.to("")
		passing.Wait()
	})
	passing.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { s.pass(c) })
		}
	})
	return listener.Addr().String(), s.to
}

type switched struct {
	mu     sync.Mutex
	server string
	open   []net.Conn
}

func (s *switched) to(server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = server
	for _, c := range s.open {
		_ = c.Close()
	}
	s.open = nil
}

// pass connects a client with the server, until one of them ends that.
func (s *switched) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	s.mu.Lock()
	server, err := net.Dial("tcp", s.server) // On loopback that takes no time.
	if err == nil {
		s.open = append(s.open, client, server)
	}
	s.mu.Unlock()
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}
