package peer

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// script runs a server that is a program of the shell. $1 is its folder.
func script(text string, more func(p *Program, port int)) Kind {
	return Kind{Name: "fake", Title: "fake", Program: func(port int, data string) (Program, error) {
		p := Program{Serve: []string{"sh", "-c", text, "sh", data}, Ready: "at last"}
		if more != nil {
			more(&p, port)
		}
		return p, nil
	}}
}

// await fails the test unless something is so within 20 s.
var await = suites.Eventually

func TestAProgramIsTriedOnAnotherPortIfItsOwnIsTaken(t *testing.T) {
	var ports []int
	s := script("", func(p *Program, port int) {
		ports = append(ports, port)
		if len(ports) < 3 {
			p.Serve = []string{"sh", "-c", "echo bind: Address already in use; exit 1"}
			return
		}
		p.Serve = []string{"sh", "-c", "echo it is ready at last; exec sleep 600"}
	}).Start(t)
	if len(ports) != 3 || s.Addr() != fmt.Sprint("127.0.0.1:", ports[2]) {
		t.Errorf("it was started on %v and is at %s, want three starts, and the last port", ports, s.Addr())
	}
	s.Restart()
	if len(ports) != 4 || ports[3] != ports[2] {
		t.Errorf("it was started on %v, want the same port after Restart", ports)
	}
}

func TestAPortThatAnotherHasIsNotFree(t *testing.T) {
	var port int
	var l net.Listener
	suites.Eventually(t, "a free port is had", func() (had bool) { // Another package may take it before.
		var err error
		if port, err = FreePort(); err != nil {
			t.Fatal(err)
		}
		l, err = net.Listen("tcp", Local(port))
		return err == nil
	})
	defer func() { _ = l.Close() }()
	if other, err := FreePort(); err != nil || other == port {
		t.Errorf("FreePort() = %d, %v, want another than %d", other, err, port)
	}
}

func TestAProgramsDataIsPreparedOnce(t *testing.T) {
	s := script(`echo start >>"$1/log"; echo at last; exec sleep 600`, func(p *Program, _ int) {
		p.Prepare = [][]string{{"sh", "-c", "echo first >>log"}, {"sh", "-c", "echo second >>log"}}
	}).Start(t)
	log := func() string {
		b, err := os.ReadFile(filepath.Join(s.Data(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(b)), " ")
	}
	if got := log(); got != "first second start" {
		t.Errorf("it did %q, want it prepared and then started", got)
	}
	s.Restart()
	if got := log(); got != "first second start start" {
		t.Errorf("it did %q, want it prepared once", got)
	}
	s.RestartEmpty()
	if got := log(); got != "first second start" {
		t.Errorf("it did %q, want empty data prepared", got)
	}
}

func TestAProgramThatEndsOrCanNotBePreparedIsReportedWithItsLog(t *testing.T) {
	suites.RealTime(t)
	for name, more := range map[string]func(p *Program, port int){
		"ends":              func(p *Program, _ int) { p.Serve = []string{"sh", "-c", "echo no disk; exit 1"} },
		"not prepared":      func(p *Program, _ int) { p.Prepare = [][]string{{"sh", "-c", "echo no disk; exit 1"}} },
		"prepared too well": func(p *Program, _ int) { p.Prepare = [][]string{{"sh", "-c", "echo no disk; sleep 600 & exit 1"}} },
	} {
		if s, err := script("echo at last", more).StartShared(); err == nil || !strings.Contains(err.Error(), "no disk") {
			t.Errorf("%s: StartShared() = %v, %v, want an error with the log", name, s, err)
		}
	}
}

// family is a server of three processes; the last has a session of its own, and no parent that is
// alive. Each counts in a file.
const family = `count() { while :; do echo >>"$1"; sleep 0.01; done; }
count "$1/child" &
( setsid sh -c 'while :; do echo >>"$1"; sleep 0.01; done' sh "$1/stray" & )
while [ ! -e "$1/stray" ] || [ ! -e "$1/child" ]; do sleep 0.01; done
echo at last
count "$1/parent"`

// sizes are those of the files that the family counts in.
func sizes(t *testing.T, dir string) (n [3]int64) {
	t.Helper()
	for i, name := range []string{"parent", "child", "stray"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			n[i] = info.Size()
		} else if !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return n
}

func TestPauseStopsAllProcessesOfAProgramAndKillEndsThem(t *testing.T) {
	s := script(family, nil).Start(t)
	grows := func(what string) {
		t.Helper()
		before := sizes(t, s.Data())
		await(t, what, func() bool {
			now := sizes(t, s.Data())
			return now[0] > before[0] && now[1] > before[1] && now[2] > before[2]
		})
	}
	stands := func(what string) {
		t.Helper()
		before := sizes(t, s.Data())
		time.Sleep(200 * time.Millisecond)
		if now := sizes(t, s.Data()); now != before {
			t.Errorf("%s, the server's processes count from %v to %v, want all at rest", what, before, now)
		}
	}
	grows("all three processes count")
	s.Pause()
	stands("paused")
	s.Resume()
	grows("all three count after Resume")
	s.Pause()
	s.Kill()
	stands("killed while paused")
	s.Restart()
	grows("all three count after Restart")
	s.Kill()
	stands("killed")
}

func TestAProgramIsStoppedByItsSignalWhenItsTestEnds(t *testing.T) {
	note := filepath.Join(t.TempDir(), "note")
	var data string
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprintf("paused %v", paused), func(t *testing.T) {
			s := script(`trap 'echo bye >"$2"; exit' TERM; echo at last; while :; do sleep 0.01; done`, func(p *Program, _ int) {
				p.Serve, p.Stop = append(p.Serve, note), syscall.SIGTERM
			}).Start(t)
			if data = s.Data(); paused {
				s.Pause()
			}
		})
		if b, err := os.ReadFile(note); err != nil || string(b) != "bye\n" {
			t.Errorf("paused %v: the server left %q, %v, want it to have heard the signal", paused, b, err)
		}
		if _, err := os.Stat(data); !os.IsNotExist(err) {
			t.Errorf("paused %v: its folder: %v, want it gone", paused, err)
		}
		_ = os.Remove(note)
	}
}

// Who kills the guard alone leaves no server either.
func TestAServerEndsWithItsGuard(t *testing.T) {
	s := script(`echo $$ >"$1/pid"; echo at last; exec sleep 600`, nil).Start(t)
	b, err := os.ReadFile(filepath.Join(s.Data(), "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "the server is gone", func() bool {
		p, ok := look("/proc/" + strings.TrimSpace(string(b)))
		return !ok || p.dead
	})
}

func TestRootRunsAProgramAsNobody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("root doesn't run this")
	}
	s := script(`id -un >"$1/user"; echo at last; exec sleep 600`, func(p *Program, _ int) { p.Unprivileged = true }).Start(t)
	if b, err := os.ReadFile(filepath.Join(s.Data(), "user")); err != nil || string(b) != "nobody\n" {
		t.Errorf("the server is run by %q, %v, want nobody", b, err)
	}
}

func TestAHarnessThatIsNoTestEndsPausesAndRestartsItsServer(t *testing.T) {
	data := t.TempDir()
	s, err := script(`echo $$ >>"$1/pids"; echo at last; exec sleep 600`, nil).StartIn(data)
	if err != nil {
		t.Fatal(err)
	}
	defer s.End()
	addr := s.Addr()
	state := func() process {
		b, err := os.ReadFile(filepath.Join(data, "pids"))
		if err != nil {
			t.Fatal(err)
		}
		pids := strings.Fields(string(b))
		p, ok := look("/proc/" + pids[len(pids)-1])
		p.dead = p.dead || !ok
		return p
	}
	if err := s.Freeze(); err != nil || !state().stopped {
		t.Errorf("Freeze() = %v, want nil and a server that has stopped: %+v", err, state())
	}
	if err := s.Thaw(); err != nil {
		t.Errorf("Thaw() = %v, want nil", err)
	}
	await(t, "the server goes on", func() bool { return !state().stopped })
	s.End()
	if !state().dead {
		t.Error("the server runs after End()")
	}
	if err := s.Again(); err != nil || state().dead || s.Addr() != addr {
		t.Errorf("Again() = %v at %s, want nil and a server at %s", err, s.Addr(), addr)
	}
}

func TestAHarnessThatIsNoTestLearnsWhyThereIsNoServer(t *testing.T) {
	if _, err := script("echo no room; exit 1", nil).StartIn(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("StartIn() of a server that ends = %v, want what it logged", err)
	}
}
