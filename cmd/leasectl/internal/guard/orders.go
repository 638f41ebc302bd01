//go:build unix && !aix

package guard

import (
	"bytes"
	"encoding/gob"
	"os"
	"time"
)

// orders is the program's end of the pipe to the guard. What the pipe doesn't take
// in time goes ahead of the next order: the guard never reads a part of one as the
// beginning of another.
type orders struct {
	pipe    *os.File
	unsent  bytes.Buffer
	encoder *gob.Encoder
}

func newOrders(pipe *os.File) *orders {
	o := &orders{pipe: pipe}
	o.encoder = gob.NewEncoder(&o.unsent)
	return o
}

// send gives the guard an order, unless the pipe stays full until a time.
func (o *orders) send(x order, until time.Time) error {
	if err := o.encoder.Encode(x); err != nil {
		return err
	}
	_ = o.pipe.SetWriteDeadline(until)
	_, err := o.unsent.WriteTo(o.pipe)
	return err
}

// close is an order, too: the guard kills at once.
func (o *orders) close() { _ = o.pipe.Close() }
