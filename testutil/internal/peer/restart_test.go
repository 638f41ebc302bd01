package peer

import (
	"os/exec"
	"testing"
)

// Clients know the server by its port, which is free while it is dead.
func TestARestartedServerWaitsForItsPort(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	const taken = 3
	starts := 0
	s := Kind{Name: "fake", Title: "fake", Command: func(string, string, bool) (*exec.Cmd, error) {
		starts++
		if starts > 1 && starts <= 1+taken {
			return exec.Command("sh", "-c", "echo 'Error: listen EADDRINUSE: address already in use 127.0.0.1:7' >&2; exit 1"), nil
		}
		return exec.Command("sh", "-c", "echo http://127.0.0.1:7/; cat"), nil
	}}.Start(t)
	s.Restart()
	if starts != 1+taken+1 || s.Addr() != "127.0.0.1:7" {
		t.Errorf("%d starts, at %s, want two and one for each time that the port was taken: %d", starts, s.Addr(), taken)
	}
}
