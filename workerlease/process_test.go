package workerlease_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/mongo"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/testutil/clocks"
	"github.com/slotlease/slotlease/testutil/mongopeer"
	"github.com/slotlease/slotlease/workerlease"
)

// wrongClock is the environment variable that makes the test binary a worker
// whose time of day is an hour ahead. It holds a ledger: mongodb://… or a path.
const wrongClock = "SLOTLEASE_TEST_WRONG_CLOCK"

func TestMain(m *testing.M) {
	if where := os.Getenv(wrongClock); where != "" {
		if err := workWithTheWrongClock(where); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(spreading); path != "" {
		if err := spreadTypes(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// workWithTheWrongClock is that worker's process. It prints the slots that it is
// allocated, until its standard input ends.
func workWithTheWrongClock(where string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	clk := clocks.Skewed(workerlease.NewSystemClock(), time.Hour)
	var ledger store.Ledger
	var err error
	if strings.HasPrefix(where, "mongodb") {
		ledger, err = mongo.Open(ctx, mongo.Options{URI: where, Clock: clk})
	} else {
		ledger, err = sqlite.Open(ctx, sqlite.Options{Path: where, Clock: clk})
	}
	if err != nil {
		return err
	}
	if err := ledger.Init(ctx); err != nil {
		return err
	}
	w, err := workerlease.NewClient(ledger, workerlease.ClientOptions{Clock: clk}).StartLeasing(ctx,
		workerlease.Options{WorkerType: "clock", InstanceID: "wrong", LeaseInterval: time.Second},
		workerlease.Callbacks{LeaseAllocated: func(_ context.Context, l workerlease.Lease) {
			fmt.Println(l.Slot.Start.UnixMilli())
		}})
	if err != nil {
		return err
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	cancel()
	<-w.Done()
	return ledger.Close(context.Background())
}

// A process whose time of day is an hour wrong leads, if it has the priority, and
// in the right slots: real processes on real stores.
func TestAProcessWhoseTimeOfDayIsWrongLeadsInTheRightSlots(t *testing.T) {
	suites.RealTime(t)
	if testing.Short() {
		t.Skip("runs for seconds of real time")
	}
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "leases.db")
		ledger, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		leadsInTheRightSlots(t, ledger, path)
	})
	t.Run("mongo", func(t *testing.T) {
		uri := mongopeer.URI(t)
		database := "clock_" + strconv.FormatInt(time.Now().UnixNano(), 36)
		ledger, err := mongo.Open(t.Context(), mongo.Options{URI: uri, Database: database})
		if err != nil {
			t.Fatal(err)
		}
		base, query, _ := strings.Cut(uri, "?")
		leadsInTheRightSlots(t, ledger, strings.TrimSuffix(base, "/")+"/"+database+"?"+query)
	})
}

func leadsInTheRightSlots(t *testing.T, ledger store.Ledger, where string) {
	t.Helper()
	t.Cleanup(func() { _ = ledger.Close(context.Background()) })
	if err := ledger.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The store's time is right before the wrong clock comes along.
	if _, err := ledger.Now(t.Context()); err != nil {
		t.Fatal(err)
	}
	won := make(chan struct{}, 100)
	w, err := workerlease.StartLeasing(t.Context(), ledger,
		workerlease.Options{WorkerType: "clock", InstanceID: "right", Priority: 1, LeaseInterval: time.Second},
		workerlease.Callbacks{LeaseAllocated: func(context.Context, workerlease.Lease) { won <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	<-won // alone, the one with the right clock has the lease

	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), wrongClock+"="+where)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 3 {
		if !lines.Scan() {
			t.Fatalf("the process ended: %v", cmd.Wait())
		}
		ms, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		slot := store.FromMillis(ms)
		if slot != slot.Truncate(time.Second) || time.Since(slot).Abs() > time.Minute {
			t.Errorf("allocated the slot at %v, now it is %v: want a whole second of just now", slot, time.Now().UTC())
		}
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the process ended with %v", err)
	}
	if err := w.StopLeasing(t.Context()); err != nil {
		t.Error(err)
	}
	// By priority: once it was there, the other had nothing more.
	records, _, err := ledger.Tail(t.Context(), "clock", 100)
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]int{}
	for _, r := range records {
		held[r.InstanceID]++
	}
	if held["wrong"] < 3 {
		t.Errorf("records by worker = %v, want at least 3 of the one with the wrong clock", held)
	}
}
