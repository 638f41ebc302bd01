package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/guard"
	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/workerlease"
)

// job is the command that runs in each slot that is held.
type job struct {
	name  string
	args  []string
	env   []string
	grace time.Duration // 0: by the length of the lease

	stdin, stdout, stderr *os.File
	journal               journal
	// urgent is closed when the command must be killed without a grace.
	urgent <-chan struct{}
}

// graceOf is how long the command has between SIGTERM and SIGKILL, if so much is
// left of the lease.
func (j *job) graceOf(left time.Duration) time.Duration {
	if j.grace > 0 {
		return j.grace
	}
	return min(10*time.Second, left/4)
}

// killTime is how long before the last safe moment the guard begins to kill: it
// has to find and reap every descendant, and that takes tens of milliseconds on
// a busy machine.
func killTime(left time.Duration) time.Duration { return min(100*time.Millisecond, left/50) }

// longestGrace bounds graceOf for all leases.
func (j *job) longestGrace() time.Duration { return max(j.grace, 10*time.Second) }

// run runs the command for one lease. It returns when the whole process tree is
// gone: only then is the lease released, if leasing is stopped.
func (j *job) run(ctx context.Context, l workerlease.Lease) {
	// In this order: a pause in between makes the deadline earlier, never later.
	now := guard.Boottime()
	left := l.Remaining()
	p, err := guard.Start(guard.Command{
		Path: j.name, Args: j.args, Env: environ(j.env, l),
		Stdin: j.stdin, Stdout: j.stdout, Stderr: j.stderr,
		Deadline: now + left - killTime(left),
		Grace:    j.graceOf(left),
	})
	if err != nil {
		j.journal.notStarted(l, err)
		return
	}
	j.journal.started(l, p.PID())
	ended := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		j.tell(ctx, p, ended)
	}()
	status, err := p.Wait()
	close(ended)
	<-told
	j.journal.ended(l, status, err)
}

// tell passes the end of the lease on to the command. The normal end needs no
// word: the guard knows the deadline, and kills even if this process is stopped.
func (j *job) tell(ctx context.Context, p *guard.Process, ended <-chan struct{}) {
	urgent := j.urgent
	over := ctx.Done()
	for {
		select {
		case <-ended:
			return
		case <-urgent:
			urgent, over = nil, nil
			j.order("kill", p.Kill)
		case <-over:
			over = nil
			if errors.Is(context.Cause(ctx), workerlease.ErrStopped) {
				j.order("stop", p.Stop)
			} else {
				j.order("kill", p.Kill)
			}
		}
	}
}

// order gives the guard an order. If it can't be told, it still has its
// deadline, and our own view of it is enforced.
func (j *job) order(what string, give func() error) {
	if err := give(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		j.journal.trouble(what+" the command", err)
	}
}

// environ is the environment of the command: without the store's URI, which may
// hold a password, and with what it needs to know of its lease.
func environ(env []string, l workerlease.Lease) []string {
	lease := []struct{ name, value string }{
		{"LEASE_WORKER_TYPE", l.WorkerType},
		{"LEASE_INSTANCE_ID", l.InstanceID},
		{"LEASE_GROUP", l.Group},
		{"LEASE_TOKEN", strconv.FormatInt(l.Token, 10)},
		{"LEASE_SLOT_START", store.Format(l.Slot.Start)},
		{"LEASE_SLOT_END", store.Format(l.Slot.End)},
		{"LEASE_EXPIRES_AT", store.Format(l.Expiry)},
	}
	var out []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		ours := name == storeVariable
		for _, v := range lease {
			ours = ours || name == v.name
		}
		if !ours {
			out = append(out, pair)
		}
	}
	for _, v := range lease {
		out = append(out, v.name+"="+v.value)
	}
	return out
}

// urgently is closed at the second signal or, for a tethered worker, when its
// standard input ends: then whoever started it is gone.
func (a *app) urgently(tethered bool) <-chan struct{} {
	if !tethered {
		return a.signals.urgent
	}
	urgent := make(chan struct{})
	go func() {
		defer close(urgent)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = io.Copy(io.Discard, a.stdin)
		}()
		select {
		case <-gone:
		case <-a.signals.urgent:
		}
	}()
	return urgent
}

// outlet is a file that a command can write to.
type outlet struct {
	file *os.File
	done chan struct{} // nil if the file isn't ours
}

// fileOf makes a file of a writer: the writer itself, or a pipe to it.
func fileOf(w io.Writer) (outlet, error) {
	if f, ok := w.(*os.File); ok {
		return outlet{file: f}, nil
	}
	r, f, err := os.Pipe()
	if err != nil {
		return outlet{}, err
	}
	o := outlet{file: f, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		_, _ = io.Copy(w, r)
		_ = r.Close()
	}()
	return o, nil
}

// close waits until everything is written.
func (o outlet) close() {
	if o.done != nil {
		_ = o.file.Close()
		<-o.done
	}
}
