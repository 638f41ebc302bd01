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

// Journal writes down what the clients of one process do, a line before each call
// and a line after it, for a History to load: of several processes that use one
// store, or of one that may be killed. It is safe for concurrent use.
//
// Each line is one Write, and the first is made before the call. So if w is a file
// or a pipe, what a process began is known after its death by SIGKILL, and a call
// that has no second line has an unknown outcome.
type Journal struct {
	now func() int64

	mu    sync.Mutex
	w     io.Writer
	lines int
	err   error
}

// NewJournal returns a journal that writes to w. All journals that one history
// loads must have the same clock, which may not be stepped, in any unit: such as
// the machine's boot clock, which is common to its processes. An instant that two
// readings share counts as both orders.
func NewJournal(w io.Writer, now func() int64) *Journal { return &Journal{w: w, now: now} }

// Client is as History.Client. A call that can't be written down isn't made.
func (j *Journal) Client(name string, inner store.Ledger) store.Ledger {
	return &client{Ledger: inner, name: name, sink: j}
}

// Err is the first error of the writer, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// line is one of a journal's. ID is the same in both lines of an operation.
type line struct {
	ID    int    `json:"id"`
	Begin *call  `json:"begin,omitempty"`
	End   *reply `json:"end,omitempty"`
}

func (j *Journal) begin(c call) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines++
	id := j.lines
	c.At = j.now()
	return id, j.write(line{ID: id, Begin: &c})
}

func (j *Journal) end(id int, r reply) {
	r.At = j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.write(line{ID: id, End: &r}) // Err tells. Without it, the outcome is unknown.
}

func (j *Journal) write(l line) error {
	if j.err != nil {
		return j.err
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = j.w.Write(append(text, '\n'))
	}
	if err != nil {
		j.err = fmt.Errorf("linear: journal: %w", err)
	}
	return j.err
}

// Load adds what a journal has. A last line that was cut off is passed over, as
// its writer died with it.
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
