package workerlease_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/priority"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/history"
)

// A worker of a client with fewer leases goes first.
func TestTheFewestLeasesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ledger := memory.New(memory.Options{})
		fleet := newFleet(ledger, func(o *workerlease.Options) { o.Policy = workerlease.FewestLeases() })
		for i := range 2 {
			fleet.join(t, i, 8, ledger.Handle())
		}
		at(4*time.Minute + 30*time.Second)
		if held := fleet.held(); len(held) != 2 || max(held[0], held[1])-min(held[0], held[1]) > 4 {
			t.Errorf("the clients hold %v of 8 leases", held)
		}
	})
}

// fleet are clients, each of which has a worker for each of many types.
type fleet struct {
	ledger  *memory.Ledger
	options func(*workerlease.Options)
	workers map[int][]*worker
}

func newFleet(ledger *memory.Ledger, options func(*workerlease.Options)) *fleet {
	return &fleet{ledger, options, map[int][]*worker{}}
}

// join starts the workers of a client.
func (f *fleet) join(t *testing.T, client, types int, ledger store.Ledger) {
	t.Helper()
	c := workerlease.NewClient(ledger, workerlease.ClientOptions{Roster: true})
	for i := range types {
		o := workerlease.Options{WorkerType: fmt.Sprintf("type-%02d", i), InstanceID: fmt.Sprint("client-", client), LeaseInterval: time.Minute}
		f.options(&o)
		f.workers[client] = append(f.workers[client], start(t, setup{Options: o, ledger: ledger, client: c}))
	}
}

// leave stops the workers of a client.
func (f *fleet) leave(t *testing.T, client int) {
	t.Helper()
	for _, w := range f.workers[client] {
		must(t, w.StopLeasing(t.Context()))
	}
	delete(f.workers, client)
}

// held are the numbers of leases that each client holds.
func (f *fleet) held() map[int]int {
	held := map[int]int{}
	for client, workers := range f.workers {
		held[client] = 0
		for _, w := range workers {
			if w.IsHolder() {
				held[client]++
			}
		}
	}
	return held
}

// even fails if some client doesn't hold its share of leases, within two.
func (f *fleet) even(t *testing.T, types int, when string) {
	t.Helper()
	held := f.held()
	sum := 0
	for _, client := range slices.Sorted(maps.Keys(held)) {
		n := held[client]
		if share := types / len(held); n < share-2 || n > (types+len(held)-1)/len(held)+2 {
			t.Errorf("%s, client %d holds %d of %d leases: %v", when, client, n, types, held)
		}
		sum += n
	}
	if sum != types {
		t.Errorf("%s, %d of %d leases are held: %v", when, sum, types, held)
	}
}

// Types spread evenly over clients, within two slots after one comes, goes or dies.
func TestTypesSpreadEvenly(t *testing.T) {
	suites.Prove(t, "it simulates for long")
	suites.SameGoroutines(t)
	for _, continuous := range []bool{false, true} {
		bubble(t, fmt.Sprint("continuous=", continuous), func(t *testing.T) {
			const types = 64
			ledger := memory.New(memory.Options{})
			f := newFleet(ledger, func(o *workerlease.Options) { o.TieBreak, o.Continuous = priority.Spread, continuous })
			for i := range 4 {
				f.join(t, i, types, ledger.Handle())
			}
			at(2*time.Minute + 30*time.Second)
			f.even(t, types, "two slots after the start")
			dies := spy(ledger)
			f.join(t, 4, types, dies)
			at(4*time.Minute + 30*time.Second)
			f.even(t, types, "two slots after one has joined")
			f.leave(t, 0)
			at(6*time.Minute + 30*time.Second)
			f.even(t, types, "two slots after one has left")
			dies.set(func() { dies.dead = true })
			delete(f.workers, 4)
			at(9*time.Minute + 30*time.Second)
			f.even(t, types, "three slots after one has died")
			before := f.holders()
			at(29*time.Minute + 30*time.Second)
			if !maps.Equal(f.holders(), before) {
				t.Error("types have moved though nobody came or went")
			}
		})
	}
}

// holders is who holds each type.
func (f *fleet) holders() map[string]int {
	by := map[string]int{}
	for client, workers := range f.workers {
		for _, w := range workers {
			if w.IsHolder() {
				by[w.Status().WorkerType] = client
			}
		}
	}
	return by
}

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
	if err := ledger.Init(context.Background()); err != nil {
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
	must(t, err)
	t.Cleanup(func() { _ = ledger.Close(context.Background()) })
	var running []func()
	for range 4 {
		running = append(running, spreadInProcess(t, path))
	}
	judge := func() (wrong string) {
		held := map[string]int{}
		for i := range spreadOver {
			records, stamp, err := ledger.Tail(t.Context(), fmt.Sprint("type-", i), 4)
			must(t, err)
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
	must(t, err)
	must(t, cmd.Start())
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
