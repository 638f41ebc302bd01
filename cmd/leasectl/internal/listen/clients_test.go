package listen

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/pipenet"
	"github.com/slotlease/slotlease/slots"
)

// meeting is a listener in a bubble, whose clients have the addresses that they say.
type meeting struct {
	net.Listener

	network *pipenet.Network
	from    chan string
	port    int
}

// comer is a client.
type comer struct {
	net.Conn

	from *net.TCPAddr
}

func (c comer) RemoteAddr() net.Addr { return c.from }

func (m *meeting) Accept() (net.Conn, error) {
	c, err := m.Listener.Accept()
	if err != nil {
		return nil, err
	}
	m.port++
	return comer{c, &net.TCPAddr{IP: net.ParseIP(<-m.from), Port: m.port}}, nil
}

// comes connects a client.
func (m *meeting) comes(t *testing.T, from string) net.Conn {
	t.Helper()
	c, err := m.network.DialContext(t.Context(), "tcp", m.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	m.from <- from
	synctest.Wait()
	return c
}

// meets starts a server in a bubble.
func meets(t *testing.T) (*meeting, *Server) {
	t.Helper()
	n := pipenet.New()
	m := &meeting{Listener: n.Listen(n.Address()), network: n, from: make(chan string, 1)}
	s := start(m, options(slots.Must(slots.Every(time.Minute))))
	t.Cleanup(s.Close)
	return m, s
}

// answered is what a client is told that asks.
func answered(t *testing.T, c net.Conn, asks string) string {
	t.Helper()
	_, err := io.WriteString(c, asks)
	must(t, err)
	b, _ := io.ReadAll(c)
	return string(b)
}

const asking = "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"

// hungUp reports whether the server hangs up on a client well before its time is over.
func hungUp(c net.Conn) bool {
	_ = c.SetReadDeadline(time.Now().Add(readTime / 20))
	_, err := c.Read(make([]byte, 1))
	return err == io.EOF
}

// Clients that say nothing, or half of it, or read nothing, are cut off, and others are answered meanwhile.
func TestClientsThatAreStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := meets(t)
		begun := time.Now()
		var stuck []net.Conn
		for _, says := range []string{"", "GET /healthz HTTP/1.1\r\nHost:", "POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nx", asking} {
			c := m.comes(t, "127.0.0.1")
			_, _ = io.WriteString(c, says)
			stuck = append(stuck, c)
		}
		if got := answered(t, m.comes(t, "127.0.0.1"), asking); !strings.Contains(got, " 200 OK") || time.Since(begun) > 0 {
			t.Errorf("among clients that are stuck, another is told %q after %v", got, time.Since(begun))
		}
		const patience = 5 * time.Second
		for i, c := range stuck {
			if i == 3 {
				time.Sleep(time.Second) // It reads when its answer should be given up.
			}
			b, err := io.ReadAll(c)
			if took := time.Since(begun); err != nil || strings.Contains(string(b), " 200 OK") || took < patience || took > patience+2*time.Second {
				t.Errorf("client %d is told %q, %v after %v, want that it is cut off after %v", i, b, err, took, patience)
			}
		}
	})
}

// Clients that stay without asking take no place from those that ask, nor one address from the others.
func TestTheOldestClientMakesRoom(t *testing.T) {
	for name, c := range map[string]struct {
		idle []string // the addresses, each with as many clients as it may have
		gone string   // that whose oldest client makes room
	}{
		"one address": {[]string{"127.0.0.2", "127.0.0.1"}, "127.0.0.1"},
		"all":         {[]string{"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"}, "127.0.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, _ := meets(t)
				all := map[string][]net.Conn{}
				for _, from := range c.idle {
					for range mostOfOne {
						all[from] = append(all[from], m.comes(t, from))
					}
				}
				if got := answered(t, m.comes(t, "127.0.0.1"), asking); !strings.Contains(got, " 200 OK") {
					t.Errorf("among idle clients, one that asks is told %q", got)
				}
				for from, clients := range all {
					if got := hungUp(clients[0]); got != (from == c.gone) {
						t.Errorf("hung up on the oldest client of %s: %v", from, got)
					}
					if hungUp(clients[1]) {
						t.Errorf("hung up on another client of %s", from)
					}
				}
			})
		})
	}
}

// A client that stays, such as one with a stream, isn't cut off for others that have gone.
func TestClientsThatHaveGoneTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := meets(t)
		stays := m.comes(t, "127.0.0.1")
		for range 2 * mostOfOne {
			_ = m.comes(t, "127.0.0.1").Close()
			synctest.Wait()
		}
		if hungUp(stays) {
			t.Error("hung up on a client that stayed, for others that had gone")
		}
	})
}

// The end waits for nobody.
func TestTheEndWaitsForNoClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, s := meets(t)
		for range 60 {
			m.comes(t, "127.0.0.1")
		}
		begun := time.Now()
		s.Close()
		if took := time.Since(begun); took > 0 {
			t.Errorf("the end took %v", took)
		}
		if c, err := m.network.DialContext(t.Context(), "tcp", m.Addr().String()); err == nil {
			_ = c.Close()
			t.Error("it still listens")
		}
	})
}
