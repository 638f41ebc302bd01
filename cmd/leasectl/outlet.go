package main

import (
	"io"
	"os"
)

// outlet is a file that a command can write to.
type outlet struct {
	file *os.File
	done chan struct{} // nil if the file isn't ours
}

// fileOf makes a file of a writer: the writer itself, or a pipe to it.
func fileOf(w io.Writer) (outlet, error) {
	if f, ok := w.(*os.File); ok {
		return outlet{file: f}, nil
	}
	r, f, err := os.Pipe()
	if err != nil {
		return outlet{}, err
	}
	o := outlet{file: f, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		_, _ = io.Copy(w, r)
		_ = r.Close()
	}()
	return o, nil
}

// close waits until everything is written.
func (o outlet) close() {
	if o.done != nil {
		_ = o.file.Close()
		<-o.done
	}
}
