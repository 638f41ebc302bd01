package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

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
