package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
)

// maxFile bounds the file of a secret.
const maxFile = 64 << 10

// ReadFile reads a text of one line from a file, such as a mounted secret or a pipe, without the line feed at its end. what is
// the text, for errors, which show nothing of the content. The end of ctx ends the wait for a pipe that nobody writes, or that
// isn't closed.
func ReadFile(ctx context.Context, path, what string) (text string, err error) {
	type content struct {
		text string
		err  error
	}
	read := make(chan content, 1)
	go func() {
		text, err := readFile(path, what)
		read <- content{text, err}
	}()
	select {
	case c := <-read:
		return c.text, c.err
	case <-ctx.Done():
		return "", fmt.Errorf("could not be read to its end: %w", context.Cause(ctx))
	}
}

func readFile(path, what string) (text string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", display.WithoutPath(err)
	}
	defer f.Close() //nolint:errcheck // Nothing was written.
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", display.WithoutPath(err)
	case len(b) > maxFile:
		return "", fmt.Errorf("has more than %d KiB", maxFile>>10)
	case bytes.IndexByte(b, 0) >= 0:
		return "", errors.New("has a NUL byte: it is no text")
	}
	text = strings.TrimRight(string(b), "\r\n")
	switch {
	case text == "":
		return "", fmt.Errorf("is empty: it must have %s", what)
	case strings.ContainsAny(text, "\r\n"):
		return "", fmt.Errorf("has several lines: it must have %s alone", what)
	}
	return text, nil
}
