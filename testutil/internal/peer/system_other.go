//go:build !unix

package peer

import (
	"errors"
	"os"
	"os/exec"
)

// Lock does nothing: builds at once are wasteful here, but each is moved into
// place as a whole.
func Lock(string) (unlock func(), err error) { return func() {}, nil }

func isolate(*exec.Cmd) {}

// CanPause says whether a process can be stopped and continued.
const CanPause = false

func pause(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }
