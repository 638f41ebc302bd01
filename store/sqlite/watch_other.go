//go:build !linux

package sqlite

import (
	"context"
	"errors"
)

// watch can't know on this system.
func (l *Ledger) watch(context.Context, func()) error { return errors.ErrUnsupported }

// hint has nobody to tell.
func hint(files) {}
