package linear_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/internal/linear"
	"github.com/slotlease/slotlease/internal/linear/workload"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
)

// childVar makes the test binary a process that works on a ledger. It holds a
// task.
const childVar = "SLOTLEASE_LINEAR_CHILD"

// task is what a child process does: the rounds from First up to Rounds, on a
// SQLite file, with two clients.
type task struct {
	Name          string
	Path          string
	First, Rounds int
	Keys          int64
	Calls         int
}

const clientsPerProcess = 2

// work is a child process. Its history file goes to its standard output.
func work(text string) error {
	var k task
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return err
	}
	now, ok := bootTime()
	if !ok {
		return fmt.Errorf("no clock that processes share")
	}
	ctx := context.Background()
	l, err := sqlite.Open(ctx, sqlite.Options{Path: k.Path})
	if err != nil {
		return err
	}
	j := linear.NewHistoryFile(os.Stdout, now)
	var wg sync.WaitGroup
	for i := range clientsPerProcess {
		name := fmt.Sprint(k.Name, "/", i)
		c := workload.New(j.Client(name, l), clock.New(), 10*time.Second, name, 1)
		wg.Go(func() {
			for i := k.First; i < k.Rounds && j.Err() == nil; i++ {
				c.Work(ctx, workload.Round(i, k.Keys, k.Calls))
			}
		})
	}
	wg.Wait()
	if err := j.Err(); err != nil {
		return err
	}
	return l.Close(ctx)
}

// bootTime reads the clock that all processes of this machine share, in ns.
func bootTime() (now func() int64, ok bool) {
	c, ok := workerlease.NewSystemClock().(interface{ Boottime() time.Duration })
	if !ok {
		return nil, false
	}
	return func() int64 { return int64(c.Boottime()) }, true
}

// process is a child that runs, or ran.
type process struct {
	cmd     *exec.Cmd
	out     io.Reader
	history bytes.Buffer
	errors  bytes.Buffer
	// pending is the appends that have begun and not ended.
	pending map[int]bool
}

func start(t *testing.T, k task) *process {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	text, err := json.Marshal(k)
	must(t, err)
	p := &process{cmd: exec.CommandContext(t.Context(), self), pending: map[int]bool{}}
	p.cmd.Env = append(os.Environ(), childVar+"="+string(text))
	p.cmd.Stderr = &p.errors
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	must(t, p.cmd.Start())
	return p
}

// follow reads the history file to its end. It reports each append that begins, with
// its round.
func (p *process) follow(began func(round int)) error {
	for in := bufio.NewReader(p.out); ; {
		text, err := in.ReadBytes('\n')
		p.history.Write(text)
		if err != nil {
			return p.cmd.Wait()
		}
		var l struct {
			ID    int
			Begin *struct{ Act, WorkerType string }
		}
		if err := json.Unmarshal(text, &l); err != nil {
			return err
		}
		if l.Begin == nil {
			delete(p.pending, l.ID)
		} else if l.Begin.Act == "append" {
			p.pending[l.ID] = true
			round := 0
			_, _ = fmt.Sscanf(l.Begin.WorkerType, "round-%d", &round)
			began(round)
		}
	}
}

func TestSQLiteIsLinearizableWhileProcessesAreKilled(t *testing.T) {
	suites.Prove(t, "it kills processes again and again")
	t.Parallel()
	now, ok := bootTime()
	if !ok {
		t.Skip("processes have no clock in common here")
	}
	const keys, calls, perRound = 24, 50, 220
	rounds := max(share(t, 2)/perRound, 12) // enough for some to be killed in an append
	path := filepath.Join(t.TempDir(), "ledger.db")
	l, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	must(t, err)
	defer func() { _ = l.Close(t.Context()) }()
	must(t, l.Init(t.Context()))

	var mu sync.Mutex
	var files []*bytes.Buffer
	keep := func(p *process) {
		mu.Lock()
		defer mu.Unlock()
		files = append(files, &p.history)
	}
	var steady, victims sync.WaitGroup
	var round atomic.Int64 // about where the steady ones are
	for i := range 3 {
		p := start(t, task{Name: fmt.Sprint("steady-", i), Path: path, Rounds: rounds, Keys: keys, Calls: calls})
		keep(p)
		steady.Go(func() {
			if err := p.follow(func(at int) { round.Store(int64(at)) }); err != nil {
				t.Errorf("steady process %d: %v: %s", i, err, p.errors.String())
			}
		})
	}
	over := make(chan struct{})
	killed, inside := 0, 0
	victims.Go(func() {
		random := rand.New(rand.NewPCG(1, 1))
		for n := 0; ; n++ {
			select {
			case <-over:
				return
			default:
			}
			p := start(t, task{Name: fmt.Sprint("victim-", n), Path: path, First: int(round.Load()), Rounds: rounds, Keys: keys, Calls: calls})
			keep(p)
			left := 5 + random.IntN(40)
			err := p.follow(func(int) {
				if left--; left == 0 {
					_ = p.cmd.Process.Kill()
				}
			})
			if left > 0 && err != nil {
				t.Errorf("process %d ended by itself: %v: %s", n, err, p.errors.String())
				return
			}
			if left <= 0 && err != nil {
				killed++
				if len(p.pending) > 0 {
					inside++
				}
			}
		}
	})
	steady.Wait()
	close(over)
	victims.Wait()

	var own bytes.Buffer
	j := linear.NewHistoryFile(&own, now)
	reader := workload.New(j.Client(workload.Last, l), clock.New(), 10*time.Second, workload.Last, 1)
	for i := range rounds {
		reader.Settle(t.Context(), workload.Round(i, keys, calls))
	}
	h := linear.NewHistory()
	for _, file := range append(files, &own) {
		must(t, h.Load(file))
	}
	result := check(t, h)
	t.Logf("%d rounds; %d processes were killed, %d of them in an append", rounds, killed, inside)
	if inside == 0 || result.Conflicts == 0 {
		t.Errorf("%d processes were killed in an append, %d appends lost a race, want some of each", inside, result.Conflicts)
	}
	table.add(rowSQLite, result)
}

func TestLoadTakesAHistoryFileThatWasCutOff(t *testing.T) {
	const whole = `{"id":1,"begin":{"client":"a","act":"append","workerType":"job","seq":1,"record":{"seq":1,"claim":"c","sum":7},"at":10}}
{"id":1,"end":{"outcome":"done","until":20}}
{"id":2,"begin":{"client":"a","act":"get","workerType":"job","seq":1,"at":30}}
{"id":2,"end":{"outcome":"done","found":[{"seq":1,"claim":"c","sum":7}],"until":40}}
`
	for n := range len(whole) + 1 {
		h := linear.NewHistory()
		if err := h.Load(strings.NewReader(whole[:n])); err != nil {
			t.Errorf("Load(%q) = %v, want nil", whole[:n], err)
		}
		if _, err := h.Check(0); err != nil {
			t.Errorf("Check() of %q = %v, want nil", whole[:n], err)
		}
	}
	for _, text := range []string{
		"{\n", "\n", "{}\n", `{"id":1,"end":{"outcome":"done","until":20}}` + "\n",
		strings.Repeat(strings.SplitAfter(whole, "\n")[0], 2),
		strings.SplitAfter(whole, "\n")[0] + `{"id":1,"end":{"outcome":"done","until":9}}` + "\n",
	} {
		if err := linear.NewHistory().Load(strings.NewReader(text)); err == nil {
			t.Errorf("Load(%q) = nil, want an error", text)
		}
	}
}
