package sdnotify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slotlease/slotlease/slots"
	"github.com/slotlease/slotlease/store/memory"
	"github.com/slotlease/slotlease/workerlease"
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
	if err := m.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
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
		workerlease.Options{WorkerType: "t", InstanceID: "a", LeaseInterval: every, JoinMidSlot: true},
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
		w := lease(t, time.Hour, workerlease.ClientOptions{}, func(context.Context) {})
		r.Report(w)
		all := m.until(t, "STATUS=holds SLOT ")
		if n := slices.Index(all, "READY=1"); n < 0 || slices.Contains(all[n+1:], "READY=1") || slices.Contains(all, "WATCHDOG=1") {
			t.Errorf("%s was told %q, want READY=1 once, and no sign of life that it didn't ask for", name, all)
		}
		if want := heldStatus(w.Status().Lease); all[len(all)-1] != want {
			t.Errorf("%s was told %q, want %q", name, all[len(all)-1], want)
		}
		r.Stopping()
		r.Close()
		if got := m.next(t); got != "STOPPING=1" {
			t.Errorf("%s was told %q at the end, want STOPPING=1", name, got)
		}
		if err := m.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := m.Read(make([]byte, 100)); err == nil {
			t.Errorf("%s was told %d more bytes", name, n)
		}
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// heldStatus is what is told of a holder.
func heldStatus(l workerlease.Lease) string {
	const clock = "15:04:05.000Z"
	return fmt.Sprintf("STATUS=holds SLOT %s until %s", l.Slot.Start.UTC().Format(clock), l.Expiry.UTC().Format(clock))
}

func TestTheWatchdogHearsOfAWorkerThatIsAlive(t *testing.T) {
	t.Parallel()
	pid := fmt.Sprint(os.Getpid())
	for _, of := range []string{"", pid} {
		m := listen(t, names(t)[0])
		r := NewReporter(dial(t, m, map[string]string{intervalVariable: "400000", pidVariable: of}), plain)
		w := lease(t, 100*time.Millisecond, workerlease.ClientOptions{}, func(context.Context) {})
		r.Report(w)
		begun := time.Now()
		for range 5 {
			m.until(t, "WATCHDOG=1")
		}
		if took := time.Since(begun); took < 650*time.Millisecond || took > 4*time.Second {
			t.Errorf("five signs of life took %v, want one in each 200ms", took)
		}
		r.Close()
		if err := w.StopLeasing(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A worker that is stuck, or whose code is, is no longer reported as alive, though its process lives.
func TestTheWatchdogHearsNothingOfAWorkerThatIsStuck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(ends chan struct{}) (workerlease.ClientOptions, func(context.Context)){
		"in its observer": func(ends chan struct{}) (workerlease.ClientOptions, func(context.Context)) {
			return workerlease.ClientOptions{Observer: workerlease.ObserverFunc(func(e workerlease.Event) {
				if _, ok := e.(workerlease.Expired); ok {
					<-ends
				}
			})}, func(context.Context) {}
		},
		"in its code": func(ends chan struct{}) (workerlease.ClientOptions, func(context.Context)) {
			return workerlease.ClientOptions{}, func(context.Context) { <-ends }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := listen(t, names(t)[0])
			r := NewReporter(dial(t, m, map[string]string{intervalVariable: "200000"}), plain)
			r.stuck = time.Second
			ends := make(chan struct{})
			o, work := test(ends)
			w := lease(t, 200*time.Millisecond, o, work)
			r.Report(w)
			defer r.Close()
			m.until(t, "WATCHDOG=1")
			silent := false
			for end := time.Now().Add(20 * time.Second); !silent && time.Now().Before(end); {
				if err := m.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
					t.Fatal(err)
				}
				_, err := m.Read(make([]byte, 4096))
				silent = errors.Is(err, os.ErrDeadlineExceeded)
			}
			if !silent {
				t.Error("the watchdog goes on hearing of it")
			}
			close(ends)
			m.until(t, "WATCHDOG=1")
			if err := w.StopLeasing(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// shown is a worker that shows what others have written.
type shown struct {
	status workerlease.Status
	holder workerlease.Holder
}

func (s shown) Status() workerlease.Status         { return s.status }
func (s shown) Holder() (workerlease.Holder, bool) { return s.holder, s.holder.Token != 0 }

// Whoever may write records or orders may not speak for the service.
func TestWhatOthersHaveWrittenIsNoMessage(t *testing.T) {
	at := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	for want, w := range map[string]shown{
		`STATUS=standby, held by "b\nSTOPPING=1" until 12:05:00.000Z`: {workerlease.Status{StoreTime: at}, workerlease.Holder{InstanceID: "b\nSTOPPING=1", Token: 1, Until: at.Add(5 * time.Minute)}},
		"STATUS=claims nothing: by x STOPPING=1":                      {workerlease.Status{StoreTime: at, Paused: "by x\nSTOPPING=1"}, workerlease.Holder{}},
		"STATUS=record 3 can't be obeyed STOPPING=1":                  {workerlease.Status{StoreTime: at, Blocked: "record 3 can't be obeyed\r\nSTOPPING=1"}, workerlease.Holder{}},
		"STATUS=waits for slot 13:00:00.000Z":                         {workerlease.Status{StoreTime: at, Contending: slots.Slot{Start: at.Add(time.Hour)}}, workerlease.Holder{}},
		"STATUS=has won slot 2026-03-04T12:00:00.000Z":                {workerlease.Status{StoreTime: at, Won: slots.Slot{Start: at.AddDate(0, 0, 2)}}, workerlease.Holder{}},
	} {
		var told telling
		if got := told.next(w, at, 0, time.Minute); !slices.Equal(got, []string{"READY=1", want}) {
			t.Errorf("told %q, want READY=1 and %q", got, want)
		}
		if got := told.next(w, at, 0, time.Minute); len(got) > 0 {
			t.Errorf("told %q once more", got)
		}
	}
}

func TestThePulseOfAWorker(t *testing.T) {
	start := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	slot := slots.Slot{Start: start, End: start.Add(5 * time.Minute)}
	at := func(after time.Duration, s workerlease.Status) workerlease.Status {
		s.StoreTime, s.Contending = start.Add(after), slot
		return s
	}
	type look struct {
		after time.Duration
		s     workerlease.Status
		want  bool
	}
	for name, looks := range map[string][]look{
		"it waits for hours":     {{0, at(0, workerlease.Status{}), true}, {5 * time.Minute, at(5*time.Minute, workerlease.Status{}), true}},
		"it is stuck":            {{0, at(0, workerlease.Status{}), true}, {6 * time.Minute, at(6*time.Minute+time.Second, workerlease.Status{}), false}},
		"it has just turned":     {{0, at(0, workerlease.Status{}), true}, {6 * time.Minute, at(6*time.Minute+time.Second, workerlease.Status{Missed: 1}), true}},
		"its store is down":      {{0, at(0, workerlease.Status{}), true}, {6 * time.Minute, at(time.Hour, workerlease.Status{Failures: 9}), true}, {6*time.Minute + 59*time.Second, at(time.Hour, workerlease.Status{Failures: 9}), true}, {7 * time.Minute, at(time.Hour, workerlease.Status{Failures: 9}), false}},
		"its store has answered": {{0, at(0, workerlease.Status{SampleAge: time.Minute}), true}, {6 * time.Minute, at(time.Hour, workerlease.Status{SampleAge: time.Second}), true}},
		"it never began":         {{0, workerlease.Status{}, true}, {59 * time.Second, workerlease.Status{}, true}, {time.Minute, workerlease.Status{}, false}},
		"it tries to begin":      {{0, workerlease.Status{}, true}, {59 * time.Second, workerlease.Status{Failures: 1}, true}, {90 * time.Second, workerlease.Status{Failures: 1}, true}},
		"its code overruns":      {{0, at(0, workerlease.Status{Overrunning: true}), false}},
		"it has stopped":         {{0, at(0, workerlease.Status{Stopped: true}), false}},
	} {
		var p pulse
		for i, l := range looks {
			if got := p.beats(l.s, start.Add(l.after), time.Minute); got != l.want {
				t.Errorf("%s: look %d: alive: %v, want %v", name, i, got, l.want)
			}
		}
	}
}

// A service manager that doesn't read holds nobody up.
func TestAServiceManagerThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	m := listen(t, names(t)[0])
	s := dial(t, m, nil)
	begun := time.Now()
	_ = s.conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for {
		if _, err := s.conn.Write(make([]byte, 1000)); err != nil { // Its buffer is full.
			break
		}
	}
	r := NewReporter(s, plain)
	r.Close()
	if took := time.Since(begun); took > 5*time.Second {
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
