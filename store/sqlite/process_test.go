package sqlite

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// The environment that makes the test binary play a worker process.
const (
	roleVar = "SLOTLEASE_TEST_ROLE"
	pathVar = "SLOTLEASE_TEST_PATH"
	nameVar = "SLOTLEASE_TEST_NAME"
	sizeVar = "SLOTLEASE_TEST_ROUNDS"
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
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	o := Options{Path: path, BusyTimeout: time.Minute, ReadOnly: role == "follow" || role == "glance"}
	if role == "glance" {
		o.BusyTimeout = 100 * time.Millisecond
	}
	l, err := Open(ctx, o)
	if err != nil {
		return err
	}
	switch role {
	case "contend":
		rounds, err := strconv.Atoi(os.Getenv(sizeVar))
		if err != nil {
			return err
		}
		won, err := storetest.Contend(ctx, l, "race", rounds, 16, os.Getenv(nameVar))
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(won); err != nil {
			return err
		}
	case "crash":
		seq, err := strconv.ParseInt(os.Getenv(sizeVar), 10, 64)
		if err != nil {
			return err
		}
		if err := l.Append(ctx, storetest.Grant(os.Getenv(nameVar), seq)); err != nil {
			return err
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		if err := self.Kill(); err != nil {
			return err
		}
		select {}
	case "append":
		for seq := int64(1); ; seq++ {
			if err := l.Append(ctx, storetest.Grant("job", seq)); err != nil {
				return err
			}
			fmt.Println(seq)
		}
	case "follow":
		last, err := strconv.ParseInt(os.Getenv(sizeVar), 10, 64)
		if err != nil {
			return err
		}
		for seen := int64(0); seen < last; {
			head, stamp, err := l.Tail(ctx, os.Getenv(nameVar), 1)
			if err != nil {
				return err
			}
			if stamp.IsZero() || len(head) != 1 || head[0] != storetest.Grant(os.Getenv(nameVar), head[0].Seq) {
				return fmt.Errorf("Tail() = %v, %v, want the newest grant and a stamp", head, stamp)
			}
			if head[0].Seq > seen {
				seen = head[0].Seq
				fmt.Println(seen)
			}
		}
		if err := l.Append(ctx, storetest.Grant("job", last+1)); !errors.Is(err, store.ErrDenied) {
			return fmt.Errorf("Append() = %v, want ErrDenied", err)
		}
	case "create":
		stamp, err := l.Now(ctx)
		if err != nil {
			return err
		}
		if err := l.Append(ctx, storetest.Grant(os.Getenv(nameVar), 1)); err != nil {
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
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.CommandContext(t.Context(), self)}
	c.cmd.Env = append(os.Environ(), roleVar+"="+role, pathVar+"="+path, nameVar+"="+name, sizeVar+"="+strconv.Itoa(rounds))
	c.cmd.Stderr = &c.errors
	if role != "append" {
		c.cmd.Stdout = &c.out
	}
	if c.start, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	return c
}

// race runs children at once and waits for them.
func race(t *testing.T, children []*child) {
	t.Helper()
	for _, c := range children {
		if err := c.cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range children {
		_ = c.start.Close()
	}
	for _, c := range children {
		if err := c.cmd.Wait(); err != nil {
			t.Errorf("child: %v: %s", err, c.errors.String())
		}
	}
}

func TestProcessesThatRaceForAKeyHaveOneWinner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	rounds := 1000
	if testing.Short() {
		rounds = 100
	}
	var children []*child
	for i := range 4 {
		children = append(children, spawn(t, "contend", path, fmt.Sprint("process-", i), rounds))
	}
	race(t, children)
	wins := make([][]int64, len(children))
	for i, c := range children {
		if err := json.Unmarshal(c.out.Bytes(), &wins[i]); err != nil {
			t.Fatalf("child %d said %q: %v", i, c.out.String(), err)
		}
		t.Logf("process %d won %d of %d", i, len(wins[i]), rounds)
	}
	storetest.CheckWins(t, rounds, wins...)
}

func TestProcessesThatCreateTheFileAtOnceShareIt(t *testing.T) {
	for round := range 5 {
		path := filepath.Join(t.TempDir(), "ledger.db")
		var children []*child
		var want []string
		for i := range 4 {
			name := fmt.Sprint("job-", i)
			want = append(want, name)
			children = append(children, spawn(t, "create", path, name, 0))
		}
		race(t, children)
		l := open(t, Options{Path: path})
		got, err := l.WorkerTypes(t.Context())
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("round %d: WorkerTypes() = %v, %v, want %v", round, got, err, want)
		}
		var offsets int
		if err := raw(t, path).QueryRowContext(t.Context(), "SELECT count(*) FROM Boot").Scan(&offsets); err != nil || offsets > 1 {
			t.Errorf("round %d: Boot has %d rows (%v), want at most 1", round, offsets, err)
		}
	}
}

func TestAKilledProcessLeavesALedgerWithAllItWasToldIsStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	c := spawn(t, "append", path, "", 0)
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = c.start.Close()
	var acked int64
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if acked, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
		if acked == 50 {
			if err := c.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.cmd.Wait(); err == nil || acked < 50 {
		t.Fatalf("child: %v after %d appends, want killed after 50: %s", err, acked, c.errors.String())
	}
	for _, o := range []Options{{Path: path, ReadOnly: true}, {Path: path}} {
		l := open(t, o)
		head, _, err := l.Tail(t.Context(), "job", 1)
		if err != nil || len(head) != 1 || head[0].Seq < acked {
			t.Fatalf("Tail() after a kill = %v, %v, want Seq %d or later", head, err, acked)
		}
		for seq := int64(1); seq <= acked; seq++ {
			if r, err := l.Get(t.Context(), "job", seq); err != nil || r != storetest.Grant("job", seq) {
				t.Errorf("Get(job, %d) after a kill = %+v, %v, want what was appended", seq, r, err)
			}
		}
		if !o.ReadOnly {
			if err := l.Append(t.Context(), storetest.Grant("job", head[0].Seq+1)); err != nil {
				t.Errorf("Append() after a kill = %v, want nil", err)
			}
			if err := l.Append(t.Context(), storetest.Grant("job", acked)); !errors.Is(err, store.ErrConflict) {
				t.Errorf("Append(job, %d) after a kill = %v, want ErrConflict", acked, err)
			}
		}
	}
}
