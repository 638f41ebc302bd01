package runlog

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// maxQueued bounds the bytes of lines that wait for their reader. More lines are dropped.
	maxQueued = 1 << 20
	// orderTime is how long the writer of a line waits for it to be read, so that the log and the
	// command's own output stay in order. Leasing waits as long, once, when the reader stops.
	orderTime = 20 * time.Millisecond
	// flushTime is how long the end of the log waits for its reader.
	flushTime = time.Second
)

// lines passes lines on, one at a time and in order, until it is closed. Nobody waits for a reader
// that doesn't read, as of a terminal after Ctrl-S or of a full pipe: lines queue, and those that don't
// fit are dropped and counted.
type lines struct {
	to io.Writer
	// lost is called where lines are missing, and may write to to.
	lost func(n int)

	mu       sync.Mutex
	queue    []*queued
	newest   *queued // perhaps written already
	bytes    int     // in the queue
	draining bool
	stuck    bool // the line that is being written takes long
	closed   bool
}

// queued is a line that waits to be written.
type queued struct {
	text    []byte
	dropped int // lines that should have come after it
	written chan struct{}
}

// Write queues a line, and waits for a moment until it is written. It never fails.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return len(line), nil
	}
	if n := len(l.queue); n > 0 && l.bytes+len(line) > maxQueued {
		l.queue[n-1].dropped++
		l.mu.Unlock()
		return len(line), nil
	}
	q := &queued{text: bytes.Clone(line), written: make(chan struct{})}
	l.queue, l.newest, l.bytes = append(l.queue, q), q, l.bytes+len(line)
	if !l.draining {
		l.draining = true
		go l.drain()
	}
	stuck := l.stuck
	l.mu.Unlock()
	if !stuck && !q.await(orderTime) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stuck = l.draining
	}
	return len(line), nil
}

// drain writes what is queued.
func (l *lines) drain() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.draining = false
			l.mu.Unlock()
			return
		}
		next := l.queue[0]
		l.queue, l.bytes = l.queue[1:], l.bytes-len(next.text)
		l.mu.Unlock()
		_, _ = l.to.Write(next.text) // Nobody could be told that it failed.
		if next.dropped > 0 {
			l.lost(next.dropped)
		}
		l.mu.Lock()
		l.stuck = false
		l.mu.Unlock()
		close(next.written)
	}
}

// await waits until a line is written, and reports whether it is in time.
func (q *queued) await(limit time.Duration) bool {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-q.written:
		return true
	case <-late.C:
		return false
	}
}

// flush waits until all is written, for a time at most.
func (l *lines) flush(limit time.Duration) {
	l.mu.Lock()
	newest := l.newest
	l.mu.Unlock()
	if newest != nil {
		newest.await(limit)
	}
}

// close drops what comes from now on, and flushes what came before.
func (l *lines) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.flush(flushTime)
}

// Sync does nothing: each line is passed on at once.
func (l *lines) Sync() error { return nil }
