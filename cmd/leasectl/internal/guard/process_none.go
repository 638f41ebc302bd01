//go:build !unix || aix

package guard

import (
	"fmt"
	"syscall"
	"time"
)

// Process is a command under guard. Here there is never one.
type Process struct{}

// BecomeSubreaper returns [ErrUnsupported].
func BecomeSubreaper() error { return fmt.Errorf("become subreaper: %w", ErrUnsupported) }

// Start returns [ErrUnsupported].
func Start(c Command) (*Process, error) {
	return nil, fmt.Errorf("start %q: %w", c.Path, ErrUnsupported)
}

// PID returns 0.
func (p *Process) PID() int { return 0 }

// Means returns nothing.
func (p *Process) Means() string { return "" }

// Stop returns [ErrUnsupported].
func (p *Process) Stop() error { return ErrUnsupported }

// StopBy returns [ErrUnsupported].
func (p *Process) StopBy(time.Duration) error { return ErrUnsupported }

// Extend returns [ErrUnsupported].
func (p *Process) Extend(_, _ time.Duration) error { return ErrUnsupported }

// Kill returns [ErrUnsupported].
func (p *Process) Kill() error { return ErrUnsupported }

// Signal returns [ErrUnsupported].
func (p *Process) Signal(syscall.Signal) error { return ErrUnsupported }

// Wait returns [ErrUnsupported].
func (p *Process) Wait() (Status, error) { return Status{}, ErrUnsupported }

// origin is where Boottime counts from.
var origin = time.Now()

// Boottime returns the time since the program started: no other process takes
// part here, so any origin serves.
func Boottime() time.Duration { return time.Since(origin) }
