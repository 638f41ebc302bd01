package cosmos

import (
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/benbjohnson/clock"
)

// dating dates signatures by the account's own time. A request that is signed with a
// key has a date, and is refused if that is wrong by more than some minutes. So a
// machine whose wall clock is wrong by an hour could not lease. With dating it can,
// from the second request on, because every reply has the account's time.
type dating struct {
	mu sync.Mutex
	// at is the account's time at a reading of the clock.
	at    time.Time
	local time.Time
}

// learn records the Date of a reply that has just arrived.
func (d *dating) learn(c clock.Clock, date time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.local = date, c.Now()
}

// now is the account's time, as well as it is known.
func (d *dating) now(c clock.Clock) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() {
		return c.Now()
	}
	return d.at.Add(c.Since(d.local))
}

// misdated reports whether a request may have been refused for its date: the clock
// that dated it was wrong, or had stopped during a suspend. The reply's date is known
// by now.
func misdated(reply *http.Response) bool {
	if reply == nil || reply.Request == nil {
		return false
	}
	const tolerated = 4 * time.Minute
	sent, err := http.ParseTime(reply.Request.Header.Get(headerRequestDate))
	if err != nil {
		return false
	}
	date, err := http.ParseTime(reply.Header.Get("Date"))
	return err == nil && sent.Sub(date).Abs() > tolerated
}

// datingPolicy sets the date of a request before it is signed.
type datingPolicy struct{ ledger *Ledger }

func (p datingPolicy) Do(req *policy.Request) (*http.Response, error) {
	now := p.ledger.dating.now(p.ledger.clock)
	req.Raw().Header.Set(headerRequestDate, now.UTC().Format(http.TimeFormat))
	return req.Next()
}
