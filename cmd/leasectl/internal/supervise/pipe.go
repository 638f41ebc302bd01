package supervise

import (
	"context"
	"io"
	"os"
)

// pipe is a file that a command can write to.
type pipe struct {
	file *os.File
	done chan struct{} // nil if the file is the writer itself
}

// pipeTo makes a file of a writer: the writer itself, or a pipe to it.
func pipeTo(w io.Writer) (pipe, error) {
	if f, ok := w.(*os.File); ok {
		return pipe{file: f}, nil
	}
	r, f, err := os.Pipe()
	if err != nil {
		return pipe{}, err
	}
	p := pipe{file: f, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_, _ = io.Copy(w, r)
		_ = r.Close()
	}()
	return p, nil
}

// close waits until everything is written, or for nothing if processes that could not be
// killed may write on.
func (p pipe) close(survivors context.Context) {
	if p.done == nil {
		return
	}
	_ = p.file.Close()
	select {
	case <-p.done:
	case <-survivors.Done():
	}
}
