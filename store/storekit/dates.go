package storekit

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/slotlease/slotlease/store"
)

// Dates makes stamps of the Date header of HTTP replies, for services that have no better clock. The header has
// whole seconds, and a server may renew it only once a second (as nginx' and Node's do), so that a stamp has
// a granularity and a largest age of 1 s.
type Dates struct {
	// Skew is how far the clocks of the service's servers may be apart, which can't be seen and is an assumption.
	Skew time.Duration
	// Server names the service in stamps.
	Server string
	// Fresh says that the servers write the header anew for each reply, as Go's net/http does, so that stamps have
	// no age.
	Fresh bool
}

// Stamp is the stamp of a reply; the zero Stamp if it has no date that can be read. A date that some proxy's cache
// has kept (there is an Age header above 0) gives none.
func (d Dates) Stamp(reply *http.Response) store.Stamp {
	if reply == nil {
		return store.Stamp{}
	}
	if age := reply.Header.Get("Age"); age != "" && age != "0" {
		return store.Stamp{}
	}
	at, err := http.ParseTime(reply.Header.Get("Date"))
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return store.Stamp{}
	}
	s := store.Stamp{Time: at.UTC(), Granularity: time.Second, MaxAge: time.Second, Skew: d.Skew, Server: d.Server}
	if d.Fresh {
		s.MaxAge = 0
	}
	return s
}

// FailoverFloor is what store.Description is to say of a store whose time comes from dates alone: 8 × the uncertainty of
// store time, as workers know it after some replies. That is 0.55 to 0.9 s, as measured, or 0.4 s of fresh dates, and Skew.
func (d Dates) FailoverFloor() time.Duration {
	known := 900 * time.Millisecond
	if d.Fresh {
		known = 400 * time.Millisecond
	}
	return 8 * (known + d.Skew)
}

// stampKey is the context key of a noted stamp.
type stampKey struct{}

// noted has the newest stamp of an operation.
type noted struct {
	mu    sync.Mutex
	stamp store.Stamp
}

// Note notes the stamp of a reply for the operation of a context that Noting returned. The newest counts; the zero
// Stamp is ignored. An Objects calls it for each reply.
func Note(ctx context.Context, s store.Stamp) {
	if n, ok := ctx.Value(stampKey{}).(*noted); ok && !s.IsZero() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.stamp = s
	}
}

// Noting returns a context that takes in stamps, and a function that returns the newest of them.
func Noting(ctx context.Context) (context.Context, func() store.Stamp) {
	n := &noted{}
	return context.WithValue(ctx, stampKey{}, n), func() store.Stamp {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.stamp
	}
}
