package mysql

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/store/internal/sqldb"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// split is a proxy that sends reads outside transactions to a replica, settings to both, and all else to the primary,
// as ProxySQL, MaxScale and MySQL Router do if they are told to. It gives out connection ids of its own. Only users
// without a password can log in. It is the proxy's address.
func split(t *testing.T, primary, replica string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, "Listen()", err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_ = splitSession(c, primary, replica)
			}()
		}
	}()
	return l.Addr().String()
}

// packet reads a packet with its header.
func packet(r io.Reader) ([]byte, error) {
	p := make([]byte, 4)
	if _, err := io.ReadFull(r, p); err != nil {
		return nil, err
	}
	body := make([]byte, int(p[0])|int(p[1])<<8|int(p[2])<<16)
	_, err := io.ReadFull(r, body)
	return append(p, body...), err
}

// passed passes packets on, which to may ignore, and is the last.
func passed(to io.Writer, from io.Reader, n int) (last []byte, err error) {
	for range n {
		if last, err = packet(from); err != nil {
			return nil, err
		}
		if _, err := to.Write(last); err != nil {
			return nil, err
		}
	}
	return last, nil
}

// answer passes on the answer to one command: OK, an error, or columns and rows with an EOF after each.
func answer(to io.Writer, from io.Reader) error {
	first, err := passed(to, from, 1)
	if err != nil || first[4] == 0 || first[4] == 0xff {
		return err
	}
	if _, err := passed(to, from, int(first[4])+1); err != nil {
		return err
	}
	for {
		row, err := passed(to, from, 1)
		if err != nil || row[4] == 0xff || row[4] == 0xfe && len(row) < 13 {
			return err
		}
	}
}

func splitSession(client net.Conn, primary, replica string) error {
	var servers [2]net.Conn
	for i, at := range []string{primary, replica} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		servers[i] = c
	}
	greeting, err := packet(servers[0])
	if err != nil {
		return err
	}
	id := 5 + bytes.IndexByte(greeting[5:], 0) + 1
	binary.LittleEndian.PutUint32(greeting[id:], 0xbeef)
	greeting[id+19] &^= 1          // An EOF comes after columns.
	clear(greeting[id+27 : id+31]) // MariaDB has no capabilities of its own.
	if _, err := client.Write(greeting); err != nil {
		return err
	}
	login, err := packet(client)
	if err != nil {
		return err
	}
	if _, err := packet(servers[1]); err != nil {
		return err
	}
	for i, to := range []io.Writer{client, io.Discard} {
		if _, err := servers[i].Write(login); err != nil {
			return err
		}
		if err := answer(to, servers[i]); err != nil {
			return err
		}
	}
	inTransaction := false
	for {
		command, err := packet(client)
		if err != nil || command[4] == 1 { // COM_QUIT
			return err
		}
		text := strings.ToUpper(string(command[5:]))
		chosen := servers[:1]
		switch {
		case strings.HasPrefix(text, "START TRANSACTION"):
			inTransaction = true
		case strings.HasPrefix(text, "COMMIT"), strings.HasPrefix(text, "ROLLBACK"):
			inTransaction = false
		case strings.HasPrefix(text, "SET"):
			chosen = servers[:]
		case !inTransaction && (strings.HasPrefix(strings.TrimLeft(text, "("), "SELECT") || strings.HasPrefix(text, "SHOW")):
			chosen = servers[1:]
		}
		for i, s := range chosen {
			if _, err := s.Write(command); err != nil {
				return err
			}
			if err := answer([]io.Writer{client, io.Discard}[i], s); err != nil {
				return err
			}
		}
	}
}

// A replica lags as it likes. So what a proxy sends there is an error, whether the replica takes writes or not.
func TestAProxyThatSplitsReadsFromWritesIsRefused(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	direct := initialised(t, Options{URI: p.uri(p.primary.Addr())})
	must(t, "Append()", direct.Append(within(t), storetest.Grant("job", 1)))
	p.follows(t, "SELECT COUNT(*) FROM jobs.worker_leases", "1")
	for _, readOnly := range []string{"1", "0"} {
		execute(t, p.replica.DSN(), "SET GLOBAL read_only = "+readOnly)
		l := opened(t, Options{URI: "mysql://root@" + split(t, p.primary.Addr(), p.replica.Addr()) + "/jobs"})
		for name, call := range documenttest.Operations(l, storetest.Grant("job", 2)) {
			if err := call(within(t)); !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "a proxy sends reads to another server") {
				t.Errorf("%s by a proxy that splits, the replica read-only: %s, = %v, want ErrRefused", name, readOnly, err)
			}
		}
		found, err := l.Examine(within(t))
		must(t, "Examine()", err)
		documenttest.Finds(t, found, CheckProxy, store.LevelFail, "→ let it send all statements of this user to the server that takes writes")
	}
	// One that doesn't split does no harm, but hides which process answers.
	l := opened(t, Options{URI: "mysql://root@" + split(t, p.primary.Addr(), p.primary.Addr()) + "/jobs"})
	must(t, "Append() by a proxy", l.Append(within(t), storetest.Grant("job", 2)))
	stamp, err := l.Now(within(t))
	if err != nil || stamp.Clock != "" || stamp.Server == "" || stamp.Skew != sqldb.DefaultSkew {
		t.Errorf("Now() by a proxy = %+v, %v, want no clock's name, and the skew of several servers", stamp, err)
	}
	found, err := l.Examine(within(t))
	must(t, "Examine()", err)
	documenttest.Finds(t, found, CheckProxy, store.LevelOK, "there is one, which sends all statements to the server that takes writes")
}
