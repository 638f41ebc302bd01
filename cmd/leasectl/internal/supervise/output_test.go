package supervise

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

// whole fails if a write isn't one of whole lines.
type whole struct {
	t *testing.T

	mu  sync.Mutex
	all bytes.Buffer
}

func (w *whole) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(b) > 0 && b[len(b)-1] != '\n' {
		w.t.Errorf("a write ends within a line: %.80q", b)
	}
	return w.all.Write(b)
}

func TestTheOutputOfSeveralJobsIsOfWholeLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", mostLine)
	for name, c := range map[string]struct{ text, want string }{
		"nothing":              {"", ""},
		"lines":                {"a\nb\n", "j: a\nj: b\n"},
		"an empty line":        {"a\n\nb\n", "j: a\nj: \nj: b\n"},
		"no end":               {"a\nb", "j: a\nj: b\n"},
		"a line that is long":  {long[1:] + "\nb\n", "j: " + long[1:] + "\nj: b\n"},
		"one that is too long": {long + "y\nb\n", "j: " + long + "\nj: y\nj: b\n"},
		"many":                 {strings.Repeat("y\n", 50_000), strings.Repeat("j: y\n", 50_000)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			must(t, err)
			go func() {
				_, _ = io.WriteString(w, c.text)
				_ = w.Close()
			}()
			to := &whole{t: t}
			if pass(to, nil, r, "j: "); to.all.String() != c.want {
				t.Errorf("%.80q is passed on as %.80q (%d bytes), want %.80q (%d bytes)", c.text, to.all.String(), to.all.Len(), c.want, len(c.want))
			}
		})
	}
}

// A line is passed on when it is whole, though more is being written.
func TestALineIsNotHeldBack(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	must(t, err)
	got, to, err := os.Pipe()
	must(t, err)
	var passed sync.WaitGroup
	passed.Go(func() { pass(to, nil, r, "j: ") })
	if _, err := io.WriteString(w, "whole\npart"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := got.Read(b); err != nil || string(b[:n]) != "j: whole\n" {
		t.Errorf("%q, %v is passed on, want the line that is whole", b[:n], err)
	}
	_ = w.Close()
	passed.Wait()
	if n, err := got.Read(b); err != nil || string(b[:n]) != "j: part\n" {
		t.Errorf("%q, %v is passed on at the end, want what is left", b[:n], err)
	}
}
