package documenttest

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"sync"
	"testing"
)

// Front stands before a server, and speaks TLS to clients.
type Front struct {
	Addr string
	t    testing.TB

	mu    sync.Mutex
	now   *tls.Config
	conns map[net.Conn]bool
}

// NewFront starts one, which ends with the test. Without an address to go to it makes connections, and says nothing.
func NewFront(t testing.TB, to, cert, key, clients string) *Front {
	t.Helper()
	f := &Front{t: t, conns: map[net.Conn]bool{}}
	f.Renew(cert, key, clients)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	Must(t, "Listen()", err)
	f.Addr = l.Addr().String()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { f.serve(conn, to) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		f.Cut()
		all.Wait()
	})
	return f
}

// Renew ends all connections, and has others be made with a certificate, and demand one that clients, if it isn't empty, has issued.
func (f *Front) Renew(cert, key, clients string) {
	f.t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	Must(f.t, "LoadX509KeyPair()", err)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, SessionTicketsDisabled: true}
	if clients != "" {
		text, err := os.ReadFile(clients)
		Must(f.t, "ReadFile()", err)
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		config.ClientCAs.AppendCertsFromPEM(text)
	}
	f.mu.Lock()
	f.now = config
	f.mu.Unlock()
	f.Cut()
}

// Cut ends all connections.
func (f *Front) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		_ = c.Close()
	}
}

func (f *Front) serve(conn net.Conn, to string) {
	f.mu.Lock()
	f.conns[conn] = true
	secured := tls.Server(conn, f.now)
	f.mu.Unlock()
	defer func() {
		_ = conn.Close()
		f.mu.Lock()
		delete(f.conns, conn)
		f.mu.Unlock()
	}()
	if secured.Handshake() != nil {
		return
	}
	if to == "" {
		_, _ = io.Copy(io.Discard, secured)
		return
	}
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(server, secured)
		_ = server.Close()
	})
	_, _ = io.Copy(secured, server)
	_ = conn.Close()
	both.Wait()
}

// AuthorityIsRenewed has open make a way to connect to an address by the authority that a file has, and renews both: connections are
// made by what the file has then.
func AuthorityIsRenewed(t *testing.T, to string, open func(addr, ca string) (connect func() error)) {
	t.Helper()
	ca, key := Certificate(t)
	f, at := NewFront(t, to, ca, key, ""), Renewable(t, ca)[0]
	connect := open(f.Addr, at)
	Must(t, "a connection", connect())
	ca, key = Certificate(t)
	f.Renew(ca, key, "")
	Says(t, "a connection by the authority of before", connect(), nil, "signed by unknown authority")
	Renew(t, at, ca)
	Must(t, "a connection by the authority of now", connect())
	Must(t, "Remove()", os.Remove(at))
	f.Cut()
	Must(t, "a connection without the file", connect())
}
