package storekit

import (
	"net/http"
	"sync"
	"time"

	"github.com/benbjohnson/clock"
)

// misdatedBy is how wrong the date of a request must be for its refusal to be put down to that. Services tolerate
// 5 or 15 min.
const misdatedBy = 4 * time.Minute

// Dating dates requests by the service's own time. A service refuses a signed request whose date is wrong by more
// than some minutes, so that a machine whose clock is wrong by an hour could not lease. With Dating it can, from the
// second request on, because each reply has the service's time. It is safe for concurrent use.
type Dating struct {
	clock clock.Clock

	mu sync.Mutex
	// at is the service's time at a reading of the clock.
	at, local time.Time
}

// NewDating returns one that knows no more than the clock. Time that passes is measured by it.
func NewDating(c clock.Clock) *Dating { return &Dating{clock: c} }

// Learn takes in the Date of a reply that has just arrived, unless a cache has kept it.
func (d *Dating) Learn(reply *http.Response) {
	at := (Dates{}).Stamp(reply).Time
	if at.IsZero() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.local = at, d.clock.Now()
}

// Now is the service's time, as well as it is known.
func (d *Dating) Now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() {
		return d.clock.Now()
	}
	return d.at.Add(d.clock.Since(d.local))
}

// Misdated reports whether a request that was dated so may have been refused for that: the clock was wrong, or had
// stopped during a suspend. By the reply, which was learned, the next request is dated right.
func (d *Dating) Misdated(sent time.Time, reply *http.Response) bool {
	at := (Dates{}).Stamp(reply).Time
	return !sent.IsZero() && !at.IsZero() && sent.Sub(at).Abs() > misdatedBy
}
