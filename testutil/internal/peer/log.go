package peer

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// Log keeps the last part of what is written to it. It is safe for concurrent
// use.
type Log struct {
	mu   sync.Mutex
	text []byte
}

const logSize = 16 << 10

// Write adds p to the log. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if n := len(l.text) - logSize; n > 0 {
		l.text = append(l.text[:0], l.text[n:]...)
	}
	return len(p), nil
}

// String is what was kept.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// Clear discards the log kept so far.
func (l *Log) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = nil
}

// ErrPortTaken reports that a server ended because another program has its port.
var ErrPortTaken = errors.New("the port is taken")

// inUse is how servers in Go, C++ and Node say that a port is taken: "Address already in use".
var inUse = []byte("address already in use")

// Reason is the log as the error of a server that ended.
func (l *Log) Reason() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Contains(bytes.ToLower(l.text), inUse) {
		return fmt.Errorf("%w: %s", ErrPortTaken, l.text)
	}
	return errors.New(string(l.text))
}
