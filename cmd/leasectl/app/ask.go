package app

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/exit"
)

// ask writes a question to the standard error, and returns the line that is typed, without
// its end: empty at the end of the input. An interrupt ends the wait.
func (a *app) ask(ctx context.Context, question string) (string, error) {
	a.errorf("%s ", question)
	type answer struct {
		text string
		err  error
	}
	typed := make(chan answer, 1)
	go func() {
		lines := bufio.NewScanner(io.LimitReader(a.stdin, 1<<10))
		lines.Scan()
		typed <- answer{lines.Text(), lines.Err()}
	}()
	select {
	case got := <-typed:
		return got.text, got.err
	case <-ctx.Done():
		a.errorf("\n")
		return "", exit.With(exit.Interrupted, errors.New("interrupted; nothing was written"))
	}
}
