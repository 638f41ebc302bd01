package mysql

import (
	"bytes"
	"encoding/binary"
	"syscall"

	"github.com/slotlease/slotlease/store/internal/sqldb"
)

// mostGreeting is how many bytes of a connection are kept: more than any greeting has up to its connection id.
const mostGreeting = 256

// line is an open connection.
type line struct {
	*sqldb.Line

	// greeting is the beginning of what the server sends first. The driver reads it before it gives out the connection.
	greeting []byte
}

// Read keeps the greeting.
func (c *line) Read(p []byte) (int, error) {
	n, err := c.Line.Read(p)
	if room := mostGreeting - len(c.greeting); room > 0 {
		c.greeting = append(c.greeting, p[:min(n, room)]...)
	}
	return n, err
}

// greeted is the id that the greeting gives the connection, or false if it can't be read. It is that of the server's
// session, unless a proxy is in between, which gives out its own. The packet has a header of 4 bytes, the protocol's
// version 10, the server's version with a NUL after it, and the id in 4 bytes:
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_v10.html
func (c *line) greeted() (uint32, bool) {
	const header = 4
	if len(c.greeting) < header+1 || c.greeting[header] != 10 {
		return 0, false
	}
	rest := c.greeting[header+1:]
	end := bytes.IndexByte(rest, 0)
	if end < 0 || len(rest) < end+5 {
		return 0, false
	}
	return binary.LittleEndian.Uint32(rest[end+1:]), true
}

// SyscallConn lets the driver see, before a statement, whether the other side has closed.
func (c *line) SyscallConn() (syscall.RawConn, error) {
	own, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, syscall.EINVAL
	}
	return own.SyscallConn()
}
