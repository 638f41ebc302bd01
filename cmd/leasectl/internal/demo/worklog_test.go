package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/slotlease/slotlease/internal/recordtest"
	"github.com/slotlease/slotlease/store"
)

// newLog opens a log as each work does: for itself.
func newLog(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// The killed worker's work comes back to life, and writes a line after its successor's first.
func TestALateLineIsRefusedAndCounted(t *testing.T) {
	p := goodPlay()
	path := filepath.Join(t.TempDir(), "work.log")
	if n := refused(path); n != 0 {
		t.Errorf("refused() = %d before the first line, want 0", n)
	}
	late := newLog(t, path)
	for i, line := range p.lines {
		if err := write(newLog(t, path), line, line.Event); err != nil {
			t.Fatal(err)
		}
		if i == 4 || i == 7 {
			if err := write(late, p.lines[3], LineBeat); err != nil {
				t.Fatal(err)
			}
		}
	}
	lines, err := ReadLog(path)
	if err != nil || len(lines) != len(p.lines) {
		t.Fatalf("ReadLog() = %d lines, %v, want the %d that weren't late", len(lines), err, len(p.lines))
	}
	for i, line := range lines {
		if line.Token != p.lines[i].Token || line.Event != p.lines[i].Event {
			t.Errorf("ReadLog() = %+v at %d, want %+v", line, i, p.lines[i])
		}
	}
	p.lines, p.late = lines, refused(path)
	v := p.judge()
	if v.late != 2 || v.wrong != nil {
		t.Errorf("judge() = %d late lines, %v, want 2 and nothing wrong", v.late, v.wrong)
	}
	var out bytes.Buffer
	(&screen{out: &out}).summary(v)
	if !regexp.MustCompile(`(?s)✓  late lines +2  refused by the fence\n.*All as it should be`).Match(out.Bytes()) {
		t.Errorf("the summary is\n%s", out.String())
	}
}

func TestTokensInALogOnlyGrowHoweverItsWritersMeet(t *testing.T) {
	const writers, each = 8, 25
	path := filepath.Join(t.TempDir(), "work.log")
	var all sync.WaitGroup
	for n := range writers {
		log := newLog(t, path)
		all.Go(func() {
			for range each {
				if err := write(log, Line{Worker: "w" + strconv.Itoa(n), PID: n, Token: int64(n + 1)}, LineBeat); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	lines, err := ReadLog(path)
	if n := refused(path); err != nil || len(lines)+n != writers*each {
		t.Errorf("ReadLog() = %d lines, %v, and %d were refused, want %d in all", len(lines), err, n, writers*each)
	}
	if found := overlaps(worksOf(lines, recordtest.Noon)); found != nil {
		t.Errorf("overlaps() = %q, want none behind a fence", found)
	}
	if last := lines[len(lines)-1]; last.Token != writers {
		t.Errorf("the last line has the token %d, want the highest, %d", last.Token, writers)
	}
}

func TestTheEndIsAwaitedUntilNoWorkLives(t *testing.T) {
	s := &session{log: filepath.Join(t.TempDir(), "work.log")}
	env := map[string]string{"LEASE_INSTANCE_ID": "north", "LEASE_TOKEN": "1", "LEASE_SLOT_START": store.Format(recordtest.Noon)}
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- Work(stop, s.log, func(name string) string { return env[name] }) }()
	for lines := []Line(nil); len(lines) == 0; {
		var err error
		if lines, err = ReadLog(s.log); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.awaitEnd(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("awaitEnd() = %v while the work lives, want that the demo was interrupted", err)
	}
	close(stop)
	if err := s.awaitEnd(t.Context()); err != nil {
		t.Errorf("awaitEnd() = %v, want nil", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Work() = %v, want nil", err)
	}
	if lines, err := ReadLog(s.log); err != nil || lines[len(lines)-1].Event != LineEnd {
		t.Errorf("ReadLog() = %+v, %v, want the end at last", lines, err)
	}
}
