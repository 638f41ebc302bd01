//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// workCommand is the argument that makes this program the command of a lease.
const workCommand = "work"

// The environment of a command, besides the variables that leasectl sets.
const (
	logVariable      = "CHAOS_LOG"
	fenceVariable    = "CHAOS_FENCE"
	guardVariable    = "CHAOS_GUARD" // set for grandchildren
	behaviorVariable = "CHAOS_BEHAVIOR"
)

// The behaviors of commands. Without one, a command behaves by its token.
const (
	plainCommand = "plain" // writes until it is stopped
	taskCommand  = "task"  // ends well or fails, after a time
	// A number makes a task that takes as many slots, and ends well.
)

const (
	beatEvery  = 8 * time.Millisecond
	writeEvery = 150 * time.Millisecond
)

// behavior is how a command behaves.
type behavior struct {
	stubborn bool          // ignores SIGTERM
	detaches bool          // has a grandchild in its own session
	fenced   bool          // writes to the fence
	takes    time.Duration // ends by itself after this; 0: never
	outcome  string        // the event of that end
	task     bool          // exits with an error unless it ended well
}

// behaviorOf is how the command of a line behaves, so that a run has all sorts.
func behaviorOf(name string, l line) behavior {
	switch name {
	case plainCommand:
		return behavior{}
	case taskCommand:
		c := choreOf(l)
		b := behavior{takes: c.takes, outcome: ended, task: true}
		if c.fails {
			b.outcome = failed
		}
		return b
	}
	if slots, err := strconv.ParseFloat(name, 64); err == nil {
		return behavior{takes: time.Duration(slots*float64(l.end-l.start)) * time.Millisecond, outcome: ended, task: true}
	}
	n := l.token / int64(time.Second/time.Millisecond)
	b := behavior{stubborn: n%2 == 0, detaches: n%3 == 0, fenced: true}
	if n%7 == 3 {
		b.takes, b.outcome = time.Duration(l.end-l.start)*time.Millisecond*2/5, quit
	}
	return b
}

// chore is a task, by its worker type and token: so the harness knows it, too.
type chore struct {
	takes time.Duration // from its first line on
	fails bool
}

func choreOf(l line) chore {
	random := drawer(uint64(l.token), l.workerType)
	return chore{takes: 100*ms + time.Duration(random.Int64N(int64(800*ms))), fails: random.IntN(8) == 0}
}

// drawer draws what is random for one purpose.
func drawer(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// errTask makes the exit code of a task that isn't done.
var errTask = errors.New("the task is not done")

// doWork is the command of a lease.
func doWork() error {
	l, err := ownLine()
	if err != nil {
		return err
	}
	log, err := openLog(os.Getenv(logVariable))
	if err != nil {
		return err
	}
	b := behaviorOf(os.Getenv(behaviorVariable), l)
	if guard := os.Getenv(guardVariable); guard != "" {
		l.role, b = asGrandchild, behavior{stubborn: true}
		if l.guard, err = strconv.Atoi(guard); err != nil {
			return err
		}
	}
	return log.work(l, b)
}

// ownLine is the part that all lines of this process share.
func ownLine() (l line, err error) {
	l = line{
		pid: os.Getpid(), guard: os.Getppid(), role: asCommand,
		instance: os.Getenv("LEASE_INSTANCE_ID"), workerType: os.Getenv("LEASE_WORKER_TYPE"),
	}
	if l.token, err = strconv.ParseInt(os.Getenv("LEASE_TOKEN"), 10, 64); err != nil {
		return l, err
	}
	for name, to := range map[string]*int64{"LEASE_SLOT_START": &l.start, "LEASE_SLOT_END": &l.end} {
		t, err := time.Parse(time.RFC3339, os.Getenv(name))
		if err != nil {
			return l, err
		}
		*to = t.UnixMilli()
	}
	return l, nil
}

// work writes lines until it is stopped, or ends by itself.
func (s *sharedLog) work(l line, b behavior) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if b.stubborn {
		signal.Ignore(syscall.SIGTERM)
	} else {
		ctx, cancel = signal.NotifyContext(ctx, syscall.SIGTERM)
		defer cancel()
	}
	if err := s.write(l, began); err != nil {
		return err
	}
	if b.detaches {
		if err := detach(l.guard); err != nil {
			return err
		}
	}
	if b.fenced {
		go s.keepWriting(ctx, l, os.Getenv(fenceVariable))
	}
	limited := ctx
	if b.takes > 0 {
		limited, cancel = context.WithTimeout(ctx, b.takes)
		defer cancel()
	}
	if err := s.beat(limited, l); err != nil {
		return err
	}
	outcome := b.outcome
	if ctx.Err() != nil {
		outcome = stopped
	}
	if err := s.write(l, outcome); err != nil || !b.task || outcome == ended {
		return err
	}
	return errTask
}

// beat writes again and again, until the context ends.
func (s *sharedLog) beat(ctx context.Context, l line) error {
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	for {
		select {
		case <-beats.C:
			if err := s.write(l, beat); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// detach starts a grandchild that only the guard can find.
func detach(guard int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, workCommand)
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", guardVariable, guard))
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c.Start()
}

// sharedLog is the log that commands append to. Each line is one write, so that
// O_APPEND keeps lines whole and in the order in which they came.
type sharedLog struct {
	file *os.File
	mu   sync.Mutex
	text []byte
}

func openLog(path string) (*sharedLog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &sharedLog{file: f}, err
}

func (s *sharedLog) write(l line, event string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.event, l.boot = event, boottime()
	s.text = l.append(s.text[:0])
	_, err := s.file.Write(s.text)
	return err
}

// keepWriting writes to the fenced resource again and again, whatever the answer: a
// command that doesn't know that its lease is over does just that.
func (s *sharedLog) keepWriting(ctx context.Context, l line, where string) {
	f, err := openFence(ctx, where)
	for {
		accepted := false
		if err == nil {
			limited, cancel := context.WithTimeout(ctx, 5*time.Second)
			accepted, err = f.write(limited, l.workerType, l.token)
			cancel()
		}
		event := stale
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			fmt.Fprintf(os.Stderr, "chaos: fence: %v\n", err)
			event, err = unsure, nil
		case accepted:
			event = written
		}
		if s.write(l, event) != nil || f == nil || !pause(ctx, writeEvery) {
			return
		}
	}
}
