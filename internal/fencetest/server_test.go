//go:build linux

package fencetest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// roleVariable says what a process of this test binary plays, if it isn't the test.
const roleVariable = "FENCETEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		code := m.Run()
		for _, s := range servers {
			s.close()
		}
		os.Exit(code)
	case "holder":
		os.Exit(exit(hold()))
	default:
		os.Exit(exit(guard(role)))
	}
}

func exit(err error) int {
	if err == nil {
		return 0
	}
	fmt.Println("failed:", err)
	return 1
}

// server is a database server behind a guard: another process of this test binary, which
// ends the server and removes its files when its standard input ends. So they go even if
// the test panics or is killed.
type server struct {
	role  string
	once  sync.Once
	guard *exec.Cmd
	stdin io.Closer
	dir   string // with its socket
	err   error
}

var (
	postgres = &server{role: "postgres"}
	mariadb  = &server{role: "mariadb"}
	servers  = []*server{postgres, mariadb}
)

// folder starts the server, unless it runs, and returns the folder of its socket. It
// skips the test if the server's programs are missing.
func (s *server) folder(t *testing.T) string {
	t.Helper()
	if _, err := programs(s.role); err != nil {
		if strings.Contains(","+os.Getenv("REQUIRE_STORES")+",", ","+s.role+",") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if s.once.Do(s.start); s.err != nil {
		t.Fatal(s.err)
	}
	return s.dir
}

func (s *server) start() {
	s.guard = exec.Command(os.Args[0])
	s.guard.Env = append(os.Environ(), roleVariable+"="+s.role)
	s.guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is not for it
	s.guard.Stderr = os.Stderr
	var out io.Reader
	if s.stdin, s.err = s.guard.StdinPipe(); s.err != nil {
		return
	}
	if out, s.err = s.guard.StdoutPipe(); s.err != nil {
		return
	}
	if s.err = s.guard.Start(); s.err != nil {
		return
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	dir, ok := strings.CutPrefix(strings.TrimSpace(line), "ready ")
	if s.dir = dir; !ok {
		s.err = fmt.Errorf("starting %s: %q, %w", s.role, line, err)
	}
}

func (s *server) close() {
	if s.stdin != nil {
		_ = s.stdin.Close()
		_ = s.guard.Wait()
	}
}

// programs returns those that make the files of a server, and that run it.
func programs(role string) ([2]string, error) {
	names, pattern := [2]string{"initdb", "postgres"}, "/usr/lib/postgresql/*/bin/"
	if role == "mariadb" {
		names, pattern = [2]string{"mariadb-install-db", "mariadbd"}, "/usr/*bin/"
	}
	for i, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			names[i] = path
			continue
		}
		found, _ := filepath.Glob(pattern + name)
		if len(found) == 0 {
			return names, fmt.Errorf("nothing is shown on %s: there is no program %s", role, name)
		}
		names[i] = found[len(found)-1]
	}
	return names, nil
}

// guard runs a server until the standard input ends.
func guard(role string) (err error) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	names, err := programs(role)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fencetest")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	attributes, err := unprivileged(dir)
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	create := []string{"-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"}
	serve := []string{"-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off"}
	ready, stop := "ready to accept connections", syscall.SIGQUIT // which ends its children, too
	if role == "mariadb" {
		create = []string{"--no-defaults", "--datadir=" + data, "--auth-root-authentication-method=normal", "--skip-test-db"}
		serve = []string{"--no-defaults", "--datadir=" + data, "--socket=" + filepath.Join(dir, "s"), "--skip-networking", "--pid-file=" + filepath.Join(dir, "pid")}
		ready, stop = "ready for connections", syscall.SIGKILL
	}
	run := func(program string, arguments []string) *exec.Cmd {
		c := exec.Command(program, arguments...)
		c.Dir, c.SysProcAttr = dir, attributes
		return c
	}
	if out, err := run(names[0], create).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %q", names[0], err, out)
	}
	c := run(names[1], serve)
	stderr, err := c.StderrPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	defer func() {
		_ = c.Process.Signal(stop)
		late := time.AfterFunc(10*time.Second, func() { _ = c.Process.Kill() })
		defer late.Stop()
		_ = c.Wait()
	}()
	var log []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), ready) {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			fmt.Println("ready", dir)
			<-ended
			return nil
		}
		log = append(log, lines.Text())
	}
	return fmt.Errorf("%s ended: %q", names[1], log)
}

// unprivileged gives dir to a user who isn't root, if root runs this, since the servers
// refuse root. It returns how to start a process as that user.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(nobody.Gid)
	if err != nil {
		return nil, err
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
}
