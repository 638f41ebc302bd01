//go:build linux

package fencetest

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store/sqlite"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/fence"
	"github.com/slotlease/slotlease/workerlease/fence/sqlfence"
)

// setup tells a holder, another process of this test binary, what to do.
type setup struct {
	Ledger, WorkerType string
	Driver, DSN        string
	Dialect            sqlfence.Dialect
}

// outcome is what became of a late write.
type outcome struct {
	Stale *fence.StaleError // if it was refused as stale
	Error string
}

const slot = 500 * time.Millisecond

// errAgain is returned by a task whose lease ended first, as on a busy machine.
var errAgain = errors.New("the lease has ended first")

// lease runs task once, under the first lease that is won; if it returns errAgain, also under the next one.
func lease(ctx context.Context, path, workerType string, priority int, task func(context.Context, workerlease.Lease) error) error {
	ledger, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return err
	}
	if err := ledger.Init(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	ended := false
	o := workerlease.Options{WorkerType: workerType, LeaseInterval: slot, Priority: priority}
	err = workerlease.Run(ctx, ledger, o, func(ctx context.Context, l workerlease.Lease) error {
		if ended {
			return nil
		}
		if failed = task(ctx, l); !errors.Is(failed, errAgain) {
			ended = true
			cancel()
		}
		return nil
	})
	return errors.Join(err, failed, ledger.Close(context.WithoutCancel(ctx)))
}

// hold gets a lease, says its token, and writes when it is told to, as one does who
// doesn't look at the clock in between.
func hold() error {
	var s setup
	stdin := bufio.NewReader(os.Stdin)
	line, err := stdin.ReadBytes('\n')
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &s); err != nil {
		return err
	}
	db, err := sql.Open(s.Driver, s.DSN)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := db.Ping(); err != nil {
		return err
	}
	return lease(context.Background(), s.Ledger, s.WorkerType, 0, func(_ context.Context, l workerlease.Lease) error {
		fmt.Println(l.Token)
		if _, err := stdin.ReadByte(); err != nil {
			return err
		}
		ctx := context.Background() // the lease's own ends
		err := sqlfence.Do(ctx, db, s.Dialect, s.WorkerType, l.Token, func(tx *sql.Tx) error {
			return insert(ctx, tx, s.WorkerType, l.Token)
		})
		o := outcome{Error: fmt.Sprint(err)}
		_ = errors.As(err, &o.Stale)
		// What has no fence takes the same write: it does come late.
		_, err = db.ExecContext(ctx, fmt.Sprintf("INSERT INTO late (name, token) VALUES ('%s', %d)", s.WorkerType, l.Token))
		return errors.Join(err, json.NewEncoder(os.Stdout).Encode(o))
	})
}

// A holder is stopped between the grant and its write, by SIGSTOP, until another one has
// the next lease and has written. Then it goes on. FENCETEST_TRIES is how often.
func TestALateWriteIsRefused(t *testing.T) {
	tries := 10
	if s := os.Getenv("FENCETEST_TRIES"); s != "" {
		var err error
		if tries, err = strconv.Atoi(s); err != nil || tries < 1 {
			t.Fatalf("FENCETEST_TRIES is %q", s)
		}
	}
	strike := func(t *testing.T, p *peer) {
		ledger := filepath.Join(t.TempDir(), "leases.db")
		var all sync.WaitGroup
		atOnce := make(chan struct{}, 5)
		for i := range tries {
			all.Go(func() {
				atOnce <- struct{}{}
				defer func() { <-atOnce }()
				if err := p.pause(t, setup{ledger, fmt.Sprint("pause", i), p.driver, p.dsn, p.dialect}); err != nil {
					t.Errorf("try %d: %v", i, err)
				}
			})
		}
		all.Wait()
		if !t.Failed() {
			t.Logf("%d of %d late writes were refused", tries, tries)
		}
	}
	t.Run("SQLite", func(t *testing.T) { strike(t, openSQLite(t)) })
	each(t, strike)
}

// pause stops one holder.
func (p *peer) pause(t *testing.T, s setup) (err error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	holder := exec.CommandContext(ctx, os.Args[0])
	holder.Env = append(os.Environ(), roleVariable+"=holder")
	var log bytes.Buffer // says that the task overran its lease, as it should
	holder.Stderr = &log
	stdin, err := holder.StdinPipe()
	if err != nil {
		return err
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		return err
	}
	if err := holder.Start(); err != nil {
		return err
	}
	defer func() {
		cancel() // kills a holder that hasn't ended; the result is known by then
		_ = holder.Wait()
		if err != nil {
			err = fmt.Errorf("%w; the holder's log: %q", err, log.String())
		}
	}()
	if err := json.NewEncoder(stdin).Encode(s); err != nil {
		return err
	}
	stdout := bufio.NewReader(out)
	line, err := stdout.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the holder's token: %q, %w", line, err)
	}
	stale, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return fmt.Errorf("the holder's token: %w", err)
	}
	if err := stop(holder.Process.Pid); err != nil {
		return err
	}
	var newest int64
	err = lease(ctx, s.Ledger, s.WorkerType, 1, func(ctx context.Context, l workerlease.Lease) error {
		newest = l.Token
		err := sqlfence.Do(ctx, p.DB, p.dialect, s.WorkerType, l.Token, func(tx *sql.Tx) error {
			return insert(ctx, tx, s.WorkerType, l.Token)
		})
		if err != nil && ctx.Err() != nil {
			return errAgain
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("the next holder: %w", err)
	}
	if newest <= stale {
		return fmt.Errorf("the next holder has the token %d after %d", newest, stale)
	}
	// The word to write is there before the process goes on, so that nothing comes between.
	if _, err := stdin.Write([]byte("w")); err != nil {
		return err
	}
	if err := holder.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	line, err = stdout.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the late write: %q, %w", line, err)
	}
	var o outcome
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		return fmt.Errorf("the late write: %q, %w", line, err)
	}
	if want := (fence.StaleError{Name: s.WorkerType, Token: stale, Newest: newest}); o.Stale == nil || *o.Stale != want {
		return fmt.Errorf("the late write: %s, want %w", line, &want)
	}
	p.wrote(t, s.WorkerType, newest)
	if late := p.tokens(t, "late", s.WorkerType, "token"); len(late) != 1 || late[0] != stale {
		return fmt.Errorf("without a fence the late write was refused, too: %v", late)
	}
	return nil
}

// stop stops a process, and waits until the kernel says that it has stopped.
func stop(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return err
		}
		if _, state, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(state, "T") {
			return nil
		}
	}
	return errors.New("the process doesn't stop")
}
