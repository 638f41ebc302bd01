//go:build unix

package mongopeer

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/slotlease/slotlease/testutil/internal/peer"
)

// keeper is a shell's program that runs a server, and kills it and removes its data at the end of
// its own standard input: when the test binary is gone, however it ended. Only a killed server
// ends so; a regular end comes from end, which kills the keeper first.
const keeper = `exec 3<&0
"$@" </dev/null 3<&- & server=$!
{ cat <&3; kill -9 "$server"; rm -rf -- "$SLOTLEASE_PEER_DATA"; } >/dev/null 2>&1 &
wait "$server"`

// process is a mongod or a mongos. It has a process group with its keeper.
type process struct {
	program string
	flags   []string
	data    string
	log     peer.Log

	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
}

// start starts the process, for the first time or again on its data. Its log begins anew.
func (p *process) start() error {
	p.log.Clear()
	cmd := exec.Command("sh", append([]string{"-c", keeper, "sh", p.program}, p.flags...)...)
	cmd.Env = append(cmd.Environ(), "SLOTLEASE_PEER_DATA="+p.data)
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Wait would close cmd.StdinPipe, and the data go with a server that ends by itself.
	theirs, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdin = theirs
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		_ = stdin.Close()
		return fmt.Errorf("start %s: %w", p.program, err)
	}
	p.cmd, p.stdin, p.done = cmd, stdin, make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	return nil
}

// end kills the process (SIGKILL) with its keeper, and waits for both. Its data stays.
func (p *process) end() {
	if p.cmd == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_ = p.stdin.Close()
	<-p.done
	p.cmd = nil
}

// over reports whether the process has ended by itself.
func (p *process) over() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// mongodFlags are those of a member. Test commands are needed for hostInfo: see bridge.
func mongodFlags(o SetOptions, port int, data, keyFile string) []string {
	flags := []string{
		"--replSet", o.Name, "--port", strconv.Itoa(port), "--bind_ip", "127.0.0.1", "--dbpath", data, "--nounixsocket",
		"--oplogSize", "64", "--wiredTigerCacheSizeGB", "0.25", "--setParameter", "enableTestCommands=1",
	}
	if o.role != "" {
		flags = append(flags, "--"+o.role)
	}
	if keyFile != "" {
		flags = append(flags, "--keyFile", keyFile)
	}
	return flags
}

// mongosFlags are those of a router.
func mongosFlags(port int, config string) []string {
	return []string{"--configdb", config, "--port", strconv.Itoa(port), "--bind_ip", "127.0.0.1", "--nounixsocket", "--setParameter", "enableTestCommands=1"}
}

// rollbackFiles are what mongod writes about documents that it has rolled back: one folder for each
// collection below rollback.
func rollbackFiles(data string) ([]string, error) {
	return filepath.Glob(filepath.Join(data, "rollback", "*", "removed*.bson"))
}
