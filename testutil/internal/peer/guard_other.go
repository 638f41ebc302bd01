//go:build !linux

package peer

import "errors"

// canGuard says whether a Program can be run.
const canGuard = false

func killBelow(int) {}

func pauseBelow(int) error { return errors.ErrUnsupported }

func resumeBelow(int) error { return errors.ErrUnsupported }
