//go:build linux

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// follower reads a log while it is written.
type follower struct {
	path string
	file *os.File
	rest []byte // of a line that wasn't whole
}

// next are the lines that came since it was called last.
func (f *follower) next() (lines []line, err error) {
	if f.file == nil {
		f.file, err = os.Open(f.path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(f.file)
	if err != nil {
		return nil, err
	}
	text = append(f.rest, text...)
	whole := bytes.LastIndexByte(text, '\n') + 1
	f.rest = bytes.Clone(text[whole:])
	err = scanLog(bytes.NewReader(text[:whole]), func(l line) { lines = append(lines, l) })
	return lines, err
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
}

// linesOf are all lines of a log; none if nothing was written.
func linesOf(path string) ([]line, error) {
	f := follower{path: path}
	defer f.close()
	return f.next()
}
