//go:build !unix

package mongopeer

import (
	"errors"
	"os"
	"os/exec"
)

// lock does nothing: builds at once are wasteful here, but each is moved into
// place as a whole.
func lock(string) (unlock func(), err error) { return func() {}, nil }

func isolate(*exec.Cmd) {}

// canPause says whether a process can be stopped and continued.
const canPause = false

func pause(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }
