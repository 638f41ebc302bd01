package storeuri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// FileVariable is the environment variable that names a file with the store's URI.
const FileVariable = "LEASECTL_STORE_FILE"

// maxFile bounds the file of a store's URI.
const maxFile = 64 << 10

// ReadFile reads a store's URI from a file, such as a mounted secret or a pipe, without the line
// feed at its end. Its errors show nothing of the content. The end of ctx ends the wait for a pipe that
// nobody writes, or that isn't closed.
func ReadFile(ctx context.Context, path string) (uri string, err error) {
	type content struct {
		uri string
		err error
	}
	read := make(chan content, 1)
	go func() {
		uri, err := readFile(path)
		read <- content{uri, err}
	}()
	select {
	case c := <-read:
		return c.uri, c.err
	case <-ctx.Done():
		return "", fmt.Errorf("could not be read to its end: %w", context.Cause(ctx))
	}
}

func readFile(path string) (uri string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", plain(err)
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", plain(err)
	case len(b) > maxFile:
		return "", fmt.Errorf("has more than %d KiB", maxFile>>10)
	case bytes.IndexByte(b, 0) >= 0:
		return "", errors.New("has a NUL byte: it is no text")
	}
	uri = strings.TrimRight(string(b), "\r\n")
	switch {
	case uri == "":
		return "", errors.New("is empty: it must have the URI of the store")
	case strings.ContainsAny(uri, "\r\n"):
		return "", errors.New("has several lines: it must have the URI of the store alone")
	}
	return uri, nil
}

// plain is an error without the name of the file, which is shown already.
func plain(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// ParseFile is [Parse] for what ReadFile has read. What is malformed may be a secret as a whole, so
// the error says nothing of it.
func ParseFile(uri string, getenv func(string) string) (Target, error) {
	t, err := parse(uri)
	if _, absent := errors.AsType[*AbsentError](err); absent {
		return Target{}, err
	}
	if err != nil {
		return Target{}, errors.New("its content names no store: it must be one of " + Forms())
	}
	return t.with(getenv, nil)
}
