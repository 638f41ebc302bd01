// Package self has what a process knows of itself.
package self

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/benbjohnson/clock"
)

// Host is the name of the machine.
func Host() string {
	h, err := os.Hostname()
	if err != nil || h == "" {
		return "unknown"
	}
	return strings.ToValidUTF8(h[:min(len(h), 200)], "")
}

// Label is an InstanceID: host-pid-xxxx.
func Label() string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%s-%d-%s", Host(), os.Getpid(), hex.EncodeToString(b[:]))
}

// bootClock is an optional ability of an injected clock: a reading that goes on
// while the machine is suspended, from any fixed origin.
type bootClock interface {
	Boottime() time.Duration
}

// Clock reads the local clock that the time line is measured against: boot
// time if the injected clock has it, else the time since now.
func Clock(c clock.Clock) (read func() time.Duration, boot bool) {
	if b, ok := c.(bootClock); ok {
		return b.Boottime, true
	}
	origin := c.Now()
	return func() time.Duration { return c.Since(origin) }, false
}
