//go:build unix

package mongopeer

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
)

// bridge is the address of a member to all others and to clients: a TCP proxy that can cut the
// members off from each other while clients go through, as MongoDB's own mongobridge does. Members
// and clients are told apart by hostInfo, the host and port of the sender, which servers with
// enableTestCommands put into the hello of each connection that they make ("mongobridge uses this
// field to identify the process opening a connection to it": asio_message_port, async_client.cpp).
type bridge struct {
	listener net.Listener
	// target is where the server is now.
	target func() string
	// allowed says whether a connection from the server on a port may be. Clients have the port 0.
	allowed func(port int) bool

	mu    sync.Mutex
	pairs map[*pair]bool
}

// pair is a connection, and the one that it is passed on to.
type pair struct {
	from       int
	near, away net.Conn
}

func (p *pair) close() {
	_ = p.near.Close()
	_ = p.away.Close()
}

func newBridge(target func() string, allowed func(port int) bool) (*bridge, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &bridge{listener: listener, target: target, allowed: allowed, pairs: map[*pair]bool{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go b.pass(conn)
		}
	}()
	return b, nil
}

func (b *bridge) addr() string { return b.listener.Addr().String() }

// pass copies both ways until one side ends.
func (b *bridge) pass(near net.Conn) {
	defer func() { _ = near.Close() }()
	first, err := message(near)
	if err != nil {
		return
	}
	away, err := net.Dial("tcp", b.target())
	if err != nil {
		return
	}
	p := &pair{from: sender(first), near: near, away: away}
	defer p.close()
	b.mu.Lock()
	ok := b.allowed(p.from)
	b.pairs[p] = ok
	b.mu.Unlock()
	defer func() { b.mu.Lock(); delete(b.pairs, p); b.mu.Unlock() }()
	if !ok {
		return
	}
	if _, err := away.Write(first); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(near, away)
		p.close()
	}()
	_, _ = io.Copy(away, near)
}

// review ends the connections that aren't allowed any more.
func (b *bridge) review() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for p := range b.pairs {
		if !b.allowed(p.from) {
			p.close()
		}
	}
}

func (b *bridge) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	for p := range b.pairs {
		p.close()
	}
}

// largest is how long a first message may be: it is a hello.
const largest = 1 << 20

// message reads a whole message of the wire protocol.
func message(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head)
	if n < 16 || n > largest {
		return nil, io.ErrUnexpectedEOF
	}
	all := make([]byte, n)
	copy(all, head)
	_, err := io.ReadFull(r, all[4:])
	return all, err
}

// sender is the port in the hostInfo of a hello, or 0.
func sender(hello []byte) int {
	_, after, ok := bytes.Cut(hello, []byte("\x02hostInfo\x00"))
	if !ok || len(after) < 4 {
		return 0
	}
	text, _, _ := bytes.Cut(after[4:], []byte{0})
	port, err := strconv.Atoi(string(text[strings.LastIndexByte(string(text), ':')+1:]))
	if err != nil {
		return 0
	}
	return port
}
