//go:build linux

package main

import (
	"context"
	"fmt"
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

// The environment of a command, besides what leasectl tells it.
const (
	logVariable   = "CHAOS_LOG"
	fenceVariable = "CHAOS_FENCE"
	guardVariable = "CHAOS_GUARD" // set for grandchildren
	partVariable  = "CHAOS_PART"
)

// The parts that a command can play. Without one, it behaves by its token.
const (
	plainPart = "plain" // writes, and ends when it is told to
	taskPart  = "task"  // does what is to be done once for each slot
)

const (
	beatEvery  = 8 * time.Millisecond
	writeEvery = 150 * time.Millisecond
)

// manners are how a command behaves, by its token, so that a run has all sorts.
type manners struct {
	stubborn bool // ignores SIGTERM
	detaches bool // has a grandchild in a session of its own
	quits    bool // ends by itself in the midst of its slot
}

func mannersOf(token int64) manners {
	n := token / int64(time.Second/time.Millisecond)
	return manners{stubborn: n%2 == 0, detaches: n%3 == 0, quits: n%7 == 3}
}

// doWork is the command of a lease.
func doWork() error {
	l, err := lineOf(os.Getenv)
	if err != nil {
		return err
	}
	log, err := openLog(os.Getenv(logVariable))
	if err != nil {
		return err
	}
	switch os.Getenv(partVariable) {
	case plainPart:
		return log.plain(l)
	case taskPart:
		return log.task(l)
	}
	return log.varied(l)
}

// lineOf is what the lines of this process have in common.
func lineOf(env func(string) string) (l line, err error) {
	l = line{
		pid: os.Getpid(), guard: os.Getppid(), role: asCommand,
		instance: env("LEASE_INSTANCE_ID"), workerType: env("LEASE_WORKER_TYPE"),
	}
	if l.token, err = strconv.ParseInt(env("LEASE_TOKEN"), 10, 64); err != nil {
		return l, err
	}
	for name, to := range map[string]*int64{"LEASE_SLOT_START": &l.start, "LEASE_SLOT_END": &l.end} {
		t, err := time.Parse(time.RFC3339, env(name))
		if err != nil {
			return l, err
		}
		*to = t.UnixMilli()
	}
	return l, nil
}

// varied writes lines until it is ended, in the manners of its token.
func (s *sharedLog) varied(l line) (err error) {
	m := mannersOf(l.token)
	if guard := os.Getenv(guardVariable); guard != "" {
		l.role, m = asGrandchild, manners{stubborn: true}
		if l.guard, err = strconv.Atoi(guard); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if m.stubborn {
		signal.Ignore(syscall.SIGTERM)
	} else {
		ctx, cancel = signal.NotifyContext(ctx, syscall.SIGTERM)
		defer cancel()
	}
	if err := s.write(l, began); err != nil {
		return err
	}
	if m.detaches {
		if err := detach(l.guard); err != nil {
			return err
		}
	}
	if l.role == asCommand {
		go s.keepWriting(ctx, l, os.Getenv(fenceVariable))
	}
	work := ctx
	if m.quits {
		work, cancel = context.WithTimeout(ctx, time.Duration(l.end-l.start)*time.Millisecond*2/5)
		defer cancel()
	}
	if err := s.beat(work, l); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return s.write(l, quit)
	}
	return s.write(l, told)
}

// detach starts a grandchild that nobody but the guard can find.
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

// sharedLog is the log that all commands append to. Each line is one write, so
// that O_APPEND keeps them whole and puts them in the order in which they came.
type sharedLog struct {
	file *os.File
	mu   sync.Mutex
	text []byte
}

func openLog(path string) (*sharedLog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &sharedLog{file: f}, nil
}

func (s *sharedLog) write(l line, event string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.event, l.boot = event, boottime()
	s.text = l.append(s.text[:0])
	_, err := s.file.Write(s.text)
	return err
}

// keepWriting writes to the fenced resource, again and again, whatever it says:
// a command that doesn't know that its lease is over does just that.
func (s *sharedLog) keepWriting(ctx context.Context, l line, where string) {
	ticker := time.NewTicker(writeEvery)
	defer ticker.Stop()
	f, err := openFence(ctx, where)
	for {
		accepted := false
		if err == nil {
			limited, cancel := context.WithTimeout(ctx, 5*time.Second)
			accepted, err = f.write(limited, l.workerType, l.token)
			cancel()
		}
		if ctx.Err() != nil {
			return
		}
		event := stale
		switch {
		case err != nil:
			event = unsure
		case accepted:
			event = written
		}
		if s.write(l, event) != nil {
			return
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "chaos: fence: %v\n", err)
			if f == nil {
				return
			}
			err = nil
		}
		<-ticker.C
	}
}
