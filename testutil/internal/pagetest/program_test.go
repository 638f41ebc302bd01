package pagetest

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/suites"
)

// program is leasectl as a process of its own.
type program struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}

	mu  sync.Mutex
	out bytes.Buffer // of both streams
}

// start starts leasectl on a store. It ends with the test.
func start(t testing.TB, uri string, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	p := &program{t: t, cmd: exec.Command(self, args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), append(environment(uri), "LEASECTL_TEST_MAIN=1")...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	must(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("output of leasectl %q:\n%s", args, p.output())
		}
	})
	return p
}

// Write takes the output.
func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *program) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// kill kills it, and returns when it is gone.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// said waits for a match of a pattern in its output, and returns its group.
func (p *program) said(pattern string) (group string) {
	p.t.Helper()
	suites.Eventually(p.t, fmt.Sprintf("leasectl says %q", pattern), func() bool {
		match := regexp.MustCompile(pattern).FindStringSubmatch(p.output())
		if match != nil {
			group = match[len(match)-1]
		}
		select {
		case <-p.done:
			if match == nil {
				p.t.Fatalf("leasectl %q has ended: %s", p.cmd.Args[1:], p.output())
			}
		default:
		}
		return match != nil
	})
	return group
}

// busy is how much of a processor it has used so far. It needs Linux.
func (p *program) busy() (used time.Duration) {
	p.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Skipf("the use of the processor isn't known: %v", err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	for _, field := range strings.Fields(after)[11:13] { // utime and stime, in hundredths of a second
		n, _ := strconv.ParseInt(field, 10, 64)
		used += time.Duration(n) * 10 * time.Millisecond
	}
	return used
}

// site is a page that is served.
type site struct {
	*program
	url, addr string
}

// serve serves the page of a store on a free port.
func serve(t testing.TB, uri string, flags ...string) site {
	t.Helper()
	suites.Prove(t, "it serves the page by a process")
	p := start(t, uri, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	at := p.said(`http://\S+/`)
	u, err := url.Parse(at)
	must(t, err)
	return site{p, at, u.Host}
}
