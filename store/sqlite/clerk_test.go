package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/testutil/storetest"
)

// clerk is a worker process that appends what it is told, one line each.
type clerk struct {
	to   io.WriteCloser
	from *bufio.Scanner
	end  func() // closes its ledger, and waits for it
}

// serve is what a clerk does: it appends the grant of each number that it reads, and
// writes "stored" or why not. To "now" it answers with its stamp.
func serve(path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	l, err := Open(ctx, Options{Path: path})
	if err != nil {
		fmt.Println(err)
		return nil
	}
	if id := os.Getenv(bootVar); id != "" {
		l.boot.id = id // as in a container that has one of its own
	}
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		if orders.Text() == "now" {
			s, err := l.Now(ctx)
			fmt.Println(s.Time.UnixMicro(), s.Skew, err)
			continue
		}
		seq, err := strconv.ParseInt(orders.Text(), 10, 64)
		if err != nil {
			return err
		}
		if err := l.Append(ctx, storetest.Grant("job", seq)); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("stored")
		}
	}
	return l.Close(ctx)
}

// hire starts a clerk, behind a command that gives it its world.
func hire(t *testing.T, path string, behind ...string) *clerk {
	t.Helper()
	self, err := os.Executable()
	must(t, "Executable()", err)
	args := append(behind, self)
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), roleVar+"=clerk", pathVar+"="+path)
	cmd.Stderr = os.Stderr
	to, err := cmd.StdinPipe()
	must(t, "StdinPipe()", err)
	from, err := cmd.StdoutPipe()
	must(t, "StdoutPipe()", err)
	must(t, "Start()", cmd.Start())
	c := &clerk{to: to, from: bufio.NewScanner(from)}
	c.end = func() {
		_ = to.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(c.end)
	return c
}

// now has the clerk read store time.
func (c *clerk) now(t *testing.T) (at time.Time, skew time.Duration) {
	t.Helper()
	_, _ = fmt.Fprintln(c.to, "now")
	if !c.from.Scan() {
		t.Fatalf("the clerk doesn't say its time: %v", c.from.Err())
	}
	micros, rest, _ := strings.Cut(c.from.Text(), " ")
	text, rest, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(micros, 10, 64)
	must(t, c.from.Text(), err)
	skew, err = time.ParseDuration(text)
	if err != nil || rest != "<nil>" {
		t.Fatalf("the clerk's time is %q", c.from.Text())
	}
	return time.UnixMicro(n), skew
}

// appends has the clerk append a record, and returns its answer.
func (c *clerk) appends(t *testing.T, seq int) string {
	t.Helper()
	_, _ = fmt.Fprintln(c.to, seq) // A clerk that was refused at the start has ended.
	if !c.from.Scan() {
		t.Fatalf("the clerk said nothing to %d: %v", seq, c.from.Err())
	}
	return c.from.Text()
}

func wantStored(t *testing.T, what, got string) {
	t.Helper()
	if got != "stored" {
		t.Errorf("%s = %q, want it stored", what, got)
	}
}

// wantUnstored demands an answer that names all parts.
func wantUnstored(t *testing.T, what, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if got == "stored" || !strings.Contains(got, part) {
			t.Errorf("%s = %q, want it refused with %q", what, got, part)
		}
	}
}
