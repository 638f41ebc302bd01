package peer

import "sync"

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
