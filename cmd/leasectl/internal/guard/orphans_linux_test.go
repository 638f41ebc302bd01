package guard

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slotlease/slotlease/internal/suites"
)

// initHelper is process 1: it gets orphans of others, and runs a command beside. It prints how
// many of its children are dead, and how the command ended.
func initHelper() error {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := BecomeSubreaper(); err != nil {
		return err
	}
	p, err := Start(Command{Path: "sleep", Args: []string{"1000"}, Deadline: Boottime() + time.Hour, Stderr: os.Stderr})
	if err != nil {
		return err
	}
	// Each starts a process in another session, and leaves it: the orphan then ends.
	for range 20 {
		other := exec.Command("/bin/sh", "-c", "setsid sleep 0.05 & exit 0")
		other.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := other.Start(); err != nil {
			return err
		}
	}
	left := func() int { return len(children(os.Getpid())) - 1 }                                               // the guard
	for end := time.Now().Add(suites.Limit(2*time.Second, time.Hour)); left() > 0 && time.Now().Before(end); { // realtime: make prove judges it
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("left:", left())
	if err := p.Kill(); err != nil {
		return err
	}
	s, err := p.Wait()
	fmt.Printf("%v; %v\n", s, err)
	return nil
}

func TestOrphansOfOthersAreReapedByProcess1(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		unavailable(t, "not root, so that no process can be process 1")
	}
	cmd := exec.Command("/proc/self/exe", helperArg, "init")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	if err := cmd.Start(); err != nil {
		unavailable(t, "no process can be process 1: "+err.Error())
	}
	defer context.AfterFunc(suites.Deadline(t), func() { _ = cmd.Process.Kill() })()
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	want := "left: 0\n" + killedBy9.because(Killed).String() + "; <nil>"
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("process 1 says %q, want %q", got, want)
	}
}
