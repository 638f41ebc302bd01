package guard

import (
	"encoding/gob"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lateHelper is a guard that starts its command late: the program is gone by then, and the
// command has run before this process exits.
func lateHelper() error {
	ran := make(chan struct{})
	forkExec = func(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
		time.Sleep(100 * time.Millisecond) // The end of the orders is noticed.
		pid, err := syscall.ForkExec(path, argv, attr)
		if err != nil {
			return 0, err // A cgroup may be gone by now.
		}
		for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		}
		close(ran)
		return pid, nil
	}
	code := serve()
	select {
	case <-ran:
	case <-time.After(time.Minute): // realtime: nobody ends this process if it hangs
		code = 99
	}
	os.Exit(code)
	return nil
}

func TestAProgramThatDiesAsItsCommandStartsLeavesNothing(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	first, err := Command{
		Path: "/proc/self/exe", Args: []string{helperArg, "start", "sleep", "1000"}, Env: marked(mark), Deadline: Boottime() + time.Hour,
	}.order()
	must(t, err)
	ordersRead, pipe, err := os.Pipe()
	must(t, err)
	reports, reportsWrite, err := os.Pipe()
	must(t, err)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	cmd := exec.Command("/proc/self/exe", helperArg, "late")
	cmd.Env = os.Environ()
	cmd.ExtraFiles = []*os.File{ordersRead, reportsWrite, null, null, null}
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	for _, f := range cmd.ExtraFiles[:3] {
		_ = f.Close()
	}
	o := newOrders(pipe)
	must(t, o.send(first, time.Now().Add(time.Hour)))
	o.close()
	var r report
	for d := gob.NewDecoder(reports); !r.Ended; {
		if err := d.Decode(&r); err != nil {
			t.Fatalf("the guard didn't report the end: %v", err)
		}
	}
	_ = cmd.Wait()
	if left := carriers(mark); len(left) > 0 {
		t.Errorf("processes %d live, and the guard, which reported %+v, is gone", left, r)
	}
	if want := killedBy9.because(ParentGone); r.Status != want || r.Survivors.error() != nil {
		t.Errorf("the guard reported %v, %v, want %v", r.Status, r.Survivors.error(), want)
	}
}
