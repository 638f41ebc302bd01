// Package sdnotify tells systemd what a worker does: that it is ready, in one line what it does,
// that it stops and, for a watchdog, that it isn't stuck. See sd_notify(3).
//
// It is written here rather than taken from a library: the protocol is a datagram, and a service
// manager that doesn't read must hold nobody up.
package sdnotify

import (
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The environment variables of the protocol.
const (
	socketVariable   = "NOTIFY_SOCKET"
	intervalVariable = "WATCHDOG_USEC"
	pidVariable      = "WATCHDOG_PID"
)

// Without is an environment for a command that the service manager doesn't know: what it says would
// be taken for what the service says.
func Without(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return name == socketVariable || name == intervalVariable || name == pidVariable
	})
}

// writeTime bounds how long a message may take that the service manager doesn't read.
const writeTime = time.Second

// Socket is that of the service manager.
type Socket struct {
	conn     *net.UnixConn
	watchdog time.Duration
}

// Dial connects to the service manager that the environment names: by a path or, with a leading @, by
// an abstract name. It is nil if there is none.
func Dial(getenv func(string) string) (*Socket, error) {
	name := getenv(socketVariable)
	if name == "" {
		return nil, nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	return &Socket{conn: conn, watchdog: watchdog(getenv)}, nil
}

// watchdog is how soon after each sign of life the service manager wants the next one; 0: it doesn't.
func watchdog(getenv func(string) string) time.Duration {
	if pid := getenv(pidVariable); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	us, err := strconv.ParseInt(getenv(intervalVariable), 10, 64)
	if err != nil || us <= 0 || us > int64(365*24*time.Hour/time.Microsecond) {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}

// send sends assignments as one message. Nobody could be told that it failed.
func (s *Socket) send(assignments ...string) {
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTime))
	_, _ = s.conn.Write([]byte(strings.Join(assignments, "\n")))
}
