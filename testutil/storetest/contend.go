package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Contend takes part in a race for the keys 1 … rounds of a worker type: each of its
// goroutines appends its own grant to every key in turn. It returns the Seqs that were
// won here, sorted; a Seq that was won twice is in it twice.
//
// It is for a race across processes: each runs Contend on its own handle with its own
// ident, and a parent passes all results to CheckWins. To settle an unknown outcome,
// Contend reads the key and compares the Claim; an append that was stored but returned
// ErrConflict counts as won. Contend fails when ctx ends, or when a key can't be settled.
func Contend(ctx context.Context, l store.Ledger, workerType string, rounds, goroutines int, ident string) (won []int64, err error) {
	var (
		mu   sync.Mutex
		errs []error
		// mine has the Seq of each claim that was made here and not yet won.
		mine = map[string]int64{}
		wg   sync.WaitGroup
	)
	for range goroutines {
		wg.Go(func() {
			for seq := int64(1); seq <= int64(rounds); seq++ {
				r := Grant(workerType, seq)
				r.InstanceID = ident
				r.Claim = rand.Text()
				ok, err := appendOrSettle(ctx, l, r)
				mu.Lock()
				switch {
				case err != nil:
					errs = append(errs, err)
				case ok:
					won = append(won, seq)
				default:
					mine[r.Claim] = seq
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return won, errors.Join(errs...)
	}
	records, _, err := l.Tail(ctx, workerType, rounds)
	if err != nil {
		return won, fmt.Errorf("contend: read the outcome: %w", err)
	}
	for _, r := range records {
		if _, ok := mine[r.Claim]; ok {
			won = append(won, r.Seq)
		}
	}
	slices.Sort(won)
	return won, nil
}

// appendOrSettle appends until the record is there or another has its key.
func appendOrSettle(ctx context.Context, l store.Ledger, r store.Record) (won bool, err error) {
	for range 100 {
		err = l.Append(ctx, r)
		if err == nil {
			return true, nil
		}
		if errors.Is(err, store.ErrConflict) {
			return false, nil
		}
		found, getErr := l.Get(ctx, r.WorkerType, r.Seq)
		if getErr == nil {
			return found.Claim == r.Claim, nil
		}
		if ctx.Err() != nil || errors.Is(err, store.ErrInvalid) {
			break
		}
		wall.Sleep(10 * time.Millisecond)
	}
	return false, fmt.Errorf("contend: key %s: %w", store.Key(r.WorkerType, r.Seq), err)
}

// CheckWins demands that each Seq from 1 to rounds was won exactly once among
// all contenders.
func CheckWins(t testing.TB, rounds int, wins ...[]int64) {
	t.Helper()
	count := map[int64]int{}
	for _, w := range wins {
		for _, seq := range w {
			count[seq]++
		}
	}
	for seq := int64(1); seq <= int64(rounds); seq++ {
		if count[seq] != 1 {
			t.Errorf("Seq %d was won %d times, want exactly once", seq, count[seq])
		}
		delete(count, seq)
	}
	for seq, n := range count {
		t.Errorf("Seq %d was won %d times, want none beyond %d", seq, n, rounds)
	}
}

// contenderVar, in its environment, makes a test binary take part in a race: a ProcessRace as JSON.
const contenderVar = "STORETEST_CONTENDER"

// raceTime bounds a race of processes.
const raceTime = 2 * time.Minute

// ProcessRace is a race of processes for the keys of a ledger.
type ProcessRace struct {
	// At is where the ledger is, such as its URI. It must be empty, and ready for appends.
	At string
	// Processes take part, with Goroutines each. They append to the keys from 1 to Rounds of the worker type "job".
	Processes, Goroutines, Rounds int
	// Env is added to the environment of the processes. Optional.
	Env []string `json:"-"`
}

// Run lets copies of the test binary contend, and demands that each key is won exactly once. All begin together. Their
// TestMain must call [PlayContender].
func (r ProcessRace) Run(t testing.TB) {
	t.Helper()
	task, err := json.Marshal(r)
	must(t, "Marshal()", err)
	ctx, cancel := context.WithTimeout(t.Context(), raceTime)
	defer cancel()
	outputs, wins := make([]bytes.Buffer, r.Processes), make([][]int64, r.Processes)
	var children []*exec.Cmd
	var begins []io.Closer
	for i := range r.Processes {
		c := exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // It is this very binary.
		c.Env = append(append(os.Environ(), r.Env...), contenderVar+"="+string(task))
		c.Stdout, c.Stderr = &outputs[i], os.Stderr
		stdin, err := c.StdinPipe()
		must(t, "StdinPipe()", err)
		must(t, "Start()", c.Start())
		children, begins = append(children, c), append(begins, stdin)
	}
	for _, begin := range begins {
		must(t, "Close()", begin.Close())
	}
	for i, c := range children {
		must(t, "Wait()", c.Wait())
		must(t, "Unmarshal()", json.Unmarshal(outputs[i].Bytes(), &wins[i]))
	}
	CheckWins(t, r.Rounds, wins...)
}

// must ends the test unless an error is nil.
func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s = %v, want nil", what, err)
	}
}

// PlayContender takes part in a race, and ends the process, if a [ProcessRace] has started it. Otherwise it does
// nothing. TestMain calls it before it runs tests. open opens the ledger.
func PlayContender(open func(ctx context.Context, at string) (store.Ledger, error)) {
	task := os.Getenv(contenderVar)
	if task == "" {
		return
	}
	if err := contend(task, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// contend begins when the standard input ends, so that all processes begin together, and prints what was won.
func contend(task string, open func(ctx context.Context, at string) (store.Ledger, error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), raceTime)
	defer cancel()
	var r ProcessRace
	if err := json.Unmarshal([]byte(task), &r); err != nil {
		return err
	}
	l, err := open(ctx, r.At)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	won, err := Contend(ctx, l, "job", r.Rounds, r.Goroutines, fmt.Sprint("process-", os.Getpid()))
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(won), l.Close(ctx))
}
