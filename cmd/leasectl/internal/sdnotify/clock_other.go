//go:build !linux

package sdnotify

import "time"

// monotonic is nothing where there is no systemd.
func monotonic() time.Duration { return 0 }
