package supervise

import (
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

// close waits until everything is written.
func (p pipe) close() {
	if p.done != nil {
		_ = p.file.Close()
		<-p.done
	}
}
