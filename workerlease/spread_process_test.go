package workerlease_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// spreading is the environment variable that makes the test binary a client with a worker for each of many types
// that spread. It holds the path of a SQLite file.
const spreading = "SLOTLEASE_TEST_SPREADING"

const (
	spreadSlot = 6 * time.Second
	spreadOver = 64
)

// spreadTypes is that process. It ends with its standard input.
func spreadTypes(path string) error {
	ledger, err := sqlite.Open(context.Background(), sqlite.Options{Path: path})
	if err != nil {
		return err
	}
	client := workerlease.NewClient(ledger, workerlease.ClientOptions{Roster: true})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var workers []*workerlease.WorkerLease
	for i := range spreadOver {
		w, err := client.StartLeasing(ctx, workerlease.Options{
			WorkerType: fmt.Sprint("type-", i), InstanceID: fmt.Sprint(os.Getpid()), LeaseInterval: spreadSlot, TieBreak: priority.Spread,
			Lead: spreadSlot / 2, // Processes of a busy machine then overtake one another less.
		}, workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) { <-ctx.Done() }})
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	cancel()
	for _, w := range workers {
		<-w.Done()
	}
	return ledger.Close(context.Background())
}

// TestTypesSpreadEvenlyOverProcesses: real processes on a real store, of which one joins, and one leaves.
func TestTypesSpreadEvenlyOverProcesses(t *testing.T) {
	if os.Getenv("SLOTLEASE_SPREAD") == "" {
		t.Skip("set SLOTLEASE_SPREAD=1: it takes half a minute on a machine that does little else, or claims come too late")
	}
	path := filepath.Join(t.TempDir(), "leases.db")
	ledger, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Close(context.Background()) })
	var running []func()
	for range 4 {
		running = append(running, spreadInProcess(t, path))
	}
	judge := func() (wrong string) {
		held := map[string]int{}
		for i := range spreadOver {
			records, stamp, err := ledger.Tail(t.Context(), fmt.Sprint("type-", i), 4)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range history.Read(records, stamp.Time, nil) {
				if e.State == history.Held {
					held[e.Record.InstanceID]++
				}
			}
		}
		sum, share := 0, spreadOver/len(running)
		for _, n := range held {
			sum += n
			if n < share-2 || n > share+3 { // within two of even, which may be no whole number
				wrong = fmt.Sprintf("%v, want %d each, within two", held, share)
			}
		}
		if sum != spreadOver || len(held) != len(running) {
			wrong = fmt.Sprintf("%d of %d leases are held, by %d of %d processes: %v", sum, spreadOver, len(held), len(running), held)
		}
		return wrong
	}
	// On a machine that is too busy, a claim that comes late is overtaken; not so in slot after slot.
	even := func(since string) {
		t.Helper()
		passSlots(2)
		wrong := judge()
		for n := 2; wrong != "" && n < 6; n++ {
			t.Logf("%d slots after %s: %s", n, since, wrong)
			passSlots(1)
			wrong = judge()
		}
		if wrong != "" {
			t.Errorf("6 slots after %s: %s", since, wrong)
		}
	}
	even("the start")
	running = append(running, spreadInProcess(t, path))
	even("one has joined")
	running[0]()
	running = running[1:]
	even("one has left")
}

// passSlots waits until so many slots have begun, and the last one is half over.
func passSlots(n int) {
	now := time.Now()
	time.Sleep(now.Truncate(spreadSlot).Add(time.Duration(n)*spreadSlot + spreadSlot/2).Sub(now))
}

// spreadInProcess starts a process, and returns what stops it in order.
func spreadInProcess(t *testing.T, path string) (stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), spreading+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		_, _ = io.WriteString(in, "\n")
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process that spreads: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}
