package linear

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/slotlease/slotlease/store"
)

// HistoryFile records what the clients of one process do, with a line before each call
// and a line after it, for a History to load. Use it when several processes share one
// store, or when a process may be killed. It is safe for concurrent use.
//
// Each line is one Write, and the first is made before the call. So if w is a file
// or a pipe, the calls that a process began are known even after SIGKILL, and a call
// without a second line has an unknown outcome.
type HistoryFile struct {
	now func() int64

	mu    sync.Mutex
	w     io.Writer
	lines int
	err   error
}

// NewHistoryFile returns a history file that writes to w. All files that one history
// loads must share a clock that is never stepped, in any unit, such as the machine's
// boot clock. Two equal readings may be in either order.
func NewHistoryFile(w io.Writer, now func() int64) *HistoryFile { return &HistoryFile{w: w, now: now} }

// Client is as History.Client. A call that can't be recorded isn't made.
func (f *HistoryFile) Client(name string, inner store.Ledger) store.Ledger {
	return &client{Ledger: inner, name: name, sink: f}
}

// Err is the first error of the writer, or nil.
func (f *HistoryFile) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// line is one line of a history file. ID is the same in both lines of an operation.
type line struct {
	ID    int    `json:"id"`
	Begin *call  `json:"begin,omitempty"`
	End   *reply `json:"end,omitempty"`
}

func (f *HistoryFile) begin(c call) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines++
	id := f.lines
	c.At = f.now()
	return id, f.write(line{ID: id, Begin: &c})
}

func (f *HistoryFile) end(id int, r reply) {
	r.At = f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.write(line{ID: id, End: &r}) // Err reports it. Without the line, the outcome is unknown.
}

func (f *HistoryFile) write(l line) error {
	if f.err != nil {
		return f.err
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = f.w.Write(append(text, '\n'))
	}
	if err != nil {
		f.err = fmt.Errorf("linear: history file: %w", err)
	}
	return f.err
}

// Load adds the contents of a history file. It ignores an incomplete last line, because
// its writer was killed while writing it.
func (h *History) Load(r io.Reader) error {
	began := map[int]int{} // where in h.ops
	h.mu.Lock()
	defer h.mu.Unlock()
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("linear: load: %w", err)
		}
		var l line
		if err := json.Unmarshal(bytes.TrimSpace(text), &l); err != nil {
			return fmt.Errorf("linear: load: line %d %.100q: %w", n, text, err)
		}
		at, known := began[l.ID]
		switch {
		case l.Begin != nil && !known:
			began[l.ID] = len(h.ops)
			h.ops = append(h.ops, operation{call: *l.Begin, reply: reply{At: never}})
			h.loaded++
		case l.End != nil && known && h.ops[at].reply.At == never && l.End.At >= h.ops[at].call.At:
			h.ops[at].reply = *l.End
		default:
			return fmt.Errorf("linear: load: line %d %.100q: neither begins nor ends an operation", n, text)
		}
	}
}
