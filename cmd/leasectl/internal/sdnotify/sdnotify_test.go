package sdnotify

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/display"
	"github.com/slotlease/slotlease/internal/suites"
	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
	"github.com/slotlease/slotlease/workerlease/event"
	"github.com/slotlease/slotlease/workerlease/health"
)

// manager is a service manager's socket.
type manager struct {
	*net.UnixConn

	name string
}

// listen makes the socket of a service manager.
func listen(t *testing.T, name string) manager {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return manager{c, name}
}

// names are those that a socket may have.
func names(t *testing.T) []string {
	t.Helper()
	all := []string{filepath.Join(t.TempDir(), "notify")}
	if runtime.GOOS == "linux" {
		all = append(all, fmt.Sprintf("@slotlease/%d/%s", os.Getpid(), t.Name()))
	}
	return all
}

// next is the next message.
func (m manager) next(t *testing.T) string {
	t.Helper()
	if err := m.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := m.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// until reads messages up to one that begins as it is given, and returns them all.
func (m manager) until(t *testing.T, beginning string) (all []string) {
	t.Helper()
	for {
		all = append(all, m.next(t))
		if strings.HasPrefix(all[len(all)-1], beginning) {
			return all
		}
	}
}

// dial connects to a manager, with more variables.
func dial(t *testing.T, m manager, more map[string]string) *Socket {
	t.Helper()
	s, err := Dial(func(name string) string {
		if name == socketVariable {
			return m.name
		}
		return more[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lease starts a worker with slots of a length.
func lease(t *testing.T, every time.Duration, o workerlease.ClientOptions, work func(context.Context)) *workerlease.WorkerLease {
	t.Helper()
	w, err := workerlease.NewClient(memory.New(memory.Options{}), o).StartLeasing(t.Context(),
		workerlease.Options{WorkerType: "t", InstanceID: "a", LeaseInterval: every, Continuous: every >= time.Hour},
		workerlease.Callbacks{LeaseAllocated: func(ctx context.Context, _ workerlease.Lease) { work(ctx) }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func plain(text string) string { return text }

func TestAServiceManagerIsToldWhatAWorkerDoes(t *testing.T) {
	t.Parallel()
	for _, name := range names(t) {
		m := listen(t, name)
		r := NewReporter(dial(t, m, nil), func(text string) string { return strings.ReplaceAll(text, "slot", "SLOT") })
		w := lease(t, 2400*time.Hour, workerlease.ClientOptions{}, func(context.Context) {})
		r.Report(w)
		all := m.until(t, "STATUS=holds SLOT ")
		if n := slices.Index(all, "READY=1"); n < 0 || slices.Contains(all[n+1:], "READY=1") || slices.Contains(all, "WATCHDOG=1") {
			t.Errorf("%s was told %q, want READY=1 once, and no sign of life that it didn't ask for", name, all)
		}
		if want := heldStatus(w.Status()); all[len(all)-1] != want {
			t.Errorf("%s was told %q, want %q", name, all[len(all)-1], want)
		}
		r.Stopping()
		if got := m.next(t); got != "STOPPING=1" {
			t.Errorf("%s was told %q at the end, want STOPPING=1", name, got)
		}
		// A stop may take longer than the service manager allows.
		for range 2 {
			if got := m.next(t); got != more {
				t.Errorf("%s was told %q while the worker stops, want %q", name, got, more)
			}
		}
		r.Close()
		if err := m.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil { // realtime: of what should not come
			t.Fatal(err)
		}
		for b := make([]byte, 100); ; {
			n, err := m.Read(b)
			if err != nil {
				break
			}
			if got := string(b[:n]); got != more {
				t.Errorf("%s was told %q after the end", name, got)
			}
		}
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// heldStatus is what is told of a holder.
func heldStatus(s workerlease.Status) string {
	return fmt.Sprintf("STATUS=holds SLOT %s until %s", display.When(s.Lease.Slot.Start, s.StoreTime), display.When(s.Lease.Expiry, s.StoreTime))
}

// shown is a worker that shows what others have written.
type shown struct {
	status workerlease.Status
	holder event.Holder
}

func (s shown) Status() workerlease.Status   { return s.status }
func (s shown) Holder() (event.Holder, bool) { return s.holder, s.holder.Token != 0 }

// Whoever may write records or orders may not speak for the service.
func TestWhatOthersHaveWrittenIsNoMessage(t *testing.T) {
	at := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	for want, w := range map[string]shown{
		`STATUS=standby, held by "b\nSTOPPING=1" until 12:05:00.000Z`: {workerlease.Status{StoreTime: at}, event.Holder{InstanceID: "b\nSTOPPING=1", Token: 1, Until: at.Add(5 * time.Minute)}},
		"STATUS=claims nothing: by x STOPPING=1":                      {workerlease.Status{StoreTime: at, Paused: "by x\nSTOPPING=1"}, event.Holder{}},
		"STATUS=record 3 can't be obeyed STOPPING=1":                  {workerlease.Status{StoreTime: at, Blocked: "record 3 can't be obeyed\r\nSTOPPING=1"}, event.Holder{}},
		"STATUS=waits for slot 13:00:00.000Z":                         {workerlease.Status{StoreTime: at, Contending: slots.Slot{Start: at.Add(time.Hour)}}, event.Holder{}},
		"STATUS=has won slot 2026-03-04T12:00:00.000Z":                {workerlease.Status{StoreTime: at, Won: slots.Slot{Start: at.AddDate(0, 0, 2)}}, event.Holder{}},
	} {
		var told telling
		if got := told.next([]health.Worker{w}, at, 0); !slices.Equal(got, []string{"READY=1", want}) {
			t.Errorf("told %q, want READY=1 and %q", got, want)
		}
		if got := told.next([]health.Worker{w}, at, 0); len(got) > 0 {
			t.Errorf("told %q once more", got)
		}
	}
}

func TestThePulseOfAWorker(t *testing.T) {
	at := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		workerlease.Status
		want bool
	}{
		"it waits":          {workerlease.Status{StoreTime: at}, true},
		"its store is down": {workerlease.Status{Failures: 9}, true},
		"it is late":        {workerlease.Status{Stuck: 9 * time.Second}, true},
		"it is stuck":       {workerlease.Status{Stuck: 10 * time.Second}, false},
		"its code overruns": {workerlease.Status{Overrunning: true}, false},
		"it has stopped":    {workerlease.Status{Stopped: true}, false},
	} {
		var told telling
		if got := slices.Contains(told.next([]health.Worker{shown{status: c.Status}}, at, time.Second), "WATCHDOG=1"); got != c.want {
			t.Errorf("%s: alive: %v, want %v", name, got, c.want)
		}
	}
}

// A service manager that doesn't read holds nobody up.
func TestAServiceManagerThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	m := listen(t, names(t)[0])
	s := dial(t, m, nil)
	_ = s.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // realtime: it fills a buffer, or part of it
	for {
		if _, err := s.conn.Write(make([]byte, 1000)); err != nil { // Its buffer is full.
			break
		}
	}
	begun := time.Now() // realtime: make prove judges it
	r := NewReporter(s, plain)
	r.Close()
	if took := time.Since(begun); took > suites.Limit(5*time.Second, time.Hour) { // realtime: make prove judges it
		t.Errorf("Close took %v", took)
	}
}

func TestWithoutAServiceManager(t *testing.T) {
	none := func(string) string { return "" }
	if s, err := Dial(none); s != nil || err != nil {
		t.Errorf("Dial() without a socket = %v, %v", s, err)
	}
	if s, err := Dial(func(name string) string { return map[string]string{socketVariable: "/nowhere/notify"}[name] }); s != nil || err == nil {
		t.Errorf("Dial() to nobody = %v, %v", s, err)
	}
	for env, want := range map[[2]string]time.Duration{
		{"", ""}: 0, {"30000000", ""}: 30 * time.Second, {"30000000", fmt.Sprint(os.Getpid())}: 30 * time.Second, {"30000000", "1"}: 0,
		{"-1", ""}: 0, {"x", ""}: 0, {"0", ""}: 0, {"9223372036854775807", ""}: 0,
	} {
		got := watchdog(func(name string) string {
			return map[string]string{intervalVariable: env[0], pidVariable: env[1]}[name]
		})
		if got != want {
			t.Errorf("watchdog with %q = %v, want %v", env, got, want)
		}
	}
	env := []string{"A=1", "NOTIFY_SOCKET=/x", "WATCHDOG_USEC=1", "WATCHDOG_PID=2", "NOTIFY_SOCKETS=kept"}
	if got := Without(env); !slices.Equal(got, []string{"A=1", "NOTIFY_SOCKETS=kept"}) || len(env) != 5 {
		t.Errorf("Without(%q) = %q", env, got)
	}
}
