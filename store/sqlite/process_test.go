package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/storetest"
	"github.com/slotlease/slotlease/workerlease"
)

// The environment that makes the test binary play a worker process.
const (
	roleVar = "SLOTLEASE_TEST_ROLE"
	pathVar = "SLOTLEASE_TEST_PATH"
	nameVar = "SLOTLEASE_TEST_NAME"
	sizeVar = "SLOTLEASE_TEST_ROUNDS"
	bootVar = "SLOTLEASE_TEST_BOOT"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role, os.Getenv(pathVar)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// play is what a child process does. It begins when its standard input ends, so
// that all children begin together.
func play(role, path string) error {
	if role == "clerk" {
		return serve(path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	o := Options{Path: path, BusyTimeout: time.Minute, ReadOnly: role == "follow" || role == "glance" || role == "visit" || role == "copy"}
	if role == "glance" {
		o.BusyTimeout = 100 * time.Millisecond
	}
	if role == "examine" {
		found, err := Examine(ctx, o)
		fmt.Print(documenttest.Lines(found))
		return err
	}
	l, err := Open(ctx, o)
	if err != nil {
		return err
	}
	name := os.Getenv(nameVar)
	last, err := strconv.ParseInt(os.Getenv(sizeVar), 10, 64)
	if err != nil {
		return err
	}
	switch role {
	case "crash":
		if err := l.Append(ctx, storetest.Grant(name, last)); err != nil {
			return err
		}
		os.Exit(2) // It closes nothing, like a kill.
	case "follow":
		for seen := int64(0); seen < last; {
			head, stamp, err := l.Tail(ctx, name, 1)
			if err != nil {
				return err
			}
			if stamp.IsZero() || len(head) != 1 || head[0] != storetest.Grant(name, head[0].Seq) {
				return fmt.Errorf("Tail() = %v, %v, want the newest grant and a stamp", head, stamp)
			}
			if head[0].Seq > seen {
				seen = head[0].Seq
				fmt.Println(seen)
			}
		}
		if err := l.Append(ctx, storetest.Grant("job", last+1)); !errors.Is(err, store.ErrDenied) {
			return fmt.Errorf("Append() = %w, want ErrDenied", err)
		}
	case "copy":
		if err := l.Backup(ctx, path+".copy"); err != nil {
			return err
		}
	case "visit":
		for visits := 1; ; visits++ {
			head, _, err := l.Tail(ctx, name, 1)
			if err != nil {
				return fmt.Errorf("visit %d: %w", visits, err)
			}
			if head[0].Seq >= last {
				fmt.Println(visits)
				return l.Close(ctx)
			}
			if err := l.Close(ctx); err != nil {
				return err
			}
			if l, err = Open(ctx, o); err != nil {
				return fmt.Errorf("visit %d: %w", visits, err)
			}
		}
	case "turns":
		for seq := int64(1); seq <= last; seq++ {
			if err := l.Append(ctx, storetest.Grant(name, seq)); err != nil {
				return err
			}
			if err := l.Close(ctx); err != nil {
				return err
			}
			if l, err = Open(ctx, o); err != nil {
				return err
			}
		}
	case "time":
		boot := workerlease.NewSystemClock().(interface{ Boottime() time.Duration })
		before := boot.Boottime()
		stamp, err := l.Now(ctx)
		if err != nil {
			return err
		}
		fmt.Println(stamp.Time.UnixNano(), int64(before), int64(stamp.Boottime), int64(boot.Boottime()))
	case "create":
		stamp, err := l.Now(ctx)
		if err != nil {
			return err
		}
		if err := l.Append(ctx, storetest.Grant(name, 1)); err != nil {
			return err
		}
		fmt.Println(stamp.Server)
	}
	return l.Close(ctx)
}

// child is a worker process that waits for its start.
type child struct {
	cmd    *exec.Cmd
	start  io.WriteCloser
	out    bytes.Buffer
	errors bytes.Buffer
}

func spawn(t *testing.T, role, path, name string, rounds int) *child {
	t.Helper()
	self, err := os.Executable()
	must(t, "Executable()", err)
	c := &child{cmd: exec.CommandContext(t.Context(), self)}
	c.cmd.Env = append(os.Environ(), roleVar+"="+role, pathVar+"="+path, nameVar+"="+name, sizeVar+"="+strconv.Itoa(rounds))
	c.cmd.Stderr = &c.errors
	c.cmd.Stdout = &c.out
	if c.start, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	return c
}

// begin starts a child at once.
func (c *child) begin(t *testing.T) {
	t.Helper()
	must(t, "Start()", c.cmd.Start())
	_ = c.start.Close()
}

// startAll starts children at once and waits for them.
func startAll(t *testing.T, children []*child) {
	t.Helper()
	for _, c := range children {
		must(t, "Start()", c.cmd.Start())
	}
	for _, c := range children {
		_ = c.start.Close()
	}
	for _, c := range children {
		c.end(t)
	}
}

// end waits for a child that must succeed.
func (c *child) end(t *testing.T) {
	t.Helper()
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("child: %v: %s", err, c.errors.String())
	}
}

func TestProcessesThatCreateTheFileAtOnceShareIt(t *testing.T) {
	suites.Prove(t, "it starts many processes")
	for round := range 5 {
		path, want := filepath.Join(t.TempDir(), "ledger.db"), []string(nil)
		var children []*child
		for i := range 4 {
			worker := fmt.Sprint("job-", i)
			want = append(want, worker)
			children = append(children, spawn(t, "create", path, worker, 0))
		}
		startAll(t, children)
		l := open(t, Options{Path: path})
		if got, err := l.WorkerTypes(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("round %d: WorkerTypes() = %v, %v, want %v", round, got, err, want)
		}
		for _, worker := range want {
			if r, err := l.Get(t.Context(), worker, 1); err != nil || r != storetest.Grant(worker, 1) {
				t.Errorf("round %d: Get(%s, 1) = %+v, %v, want what was appended", round, worker, r, err)
			}
		}
		if offsets := asked[int](t, path, "SELECT count(*) FROM Boot"); offsets > 1 {
			t.Errorf("round %d: Boot has %d rows, want at most 1", round, offsets)
		}
	}
}
