package page

import (
	"cmp"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/slotlease/slotlease/store"
)

// beatEvery is how often a stream says that it is there.
const beatEvery = 5 * time.Second

// hello begins a stream.
type hello struct {
	API       int    `json:"api"`
	Version   string `json:"version"`
	Store     string `json:"store"`
	StoreTime string `json:"storeTime,omitempty"`
	Actions   bool   `json:"actions"`
	User      string `json:"user,omitempty"`
}

// events is a stream of server-sent events. It ends when the client goes, or is too slow.
func (p *Page) events(w http.ResponseWriter, r *http.Request, of subject, user string) error {
	address, _, _ := net.SplitHostPort(r.RemoteAddr)
	t, leave, err := p.hub.join(of, cmp.Or(user, address))
	if err != nil {
		return err
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx passes each event on at once.
	first := hello{API: API, Version: p.o.Version, Store: p.o.Target.Shown, Actions: p.o.Access.Actions, User: user}
	if ahead := p.ahead.Load(); ahead != nil {
		first.StoreTime = store.Format(time.Now().Add(*ahead))
	}
	out := http.NewResponseController(w)
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for told, n := p.event("hello", first), 0; err == nil; {
		if len(told) > 0 {
			_ = out.SetWriteDeadline(time.Now().Add(patience))
			if _, err = w.Write(told); err == nil {
				err = out.Flush()
			}
		}
		var more <-chan struct{}
		if told, n, more = p.hub.since(t, n); len(told) > 0 {
			continue
		}
		select {
		case <-more:
		case <-beat.C:
			told = []byte(":\n\n")
		case <-r.Context().Done():
			return nil
		case <-p.hub.ctx.Done():
			return nil
		}
	}
	return nil // Nobody is left to read an answer.
}

// event is one of a stream.
func (p *Page) event(name string, value any) []byte {
	return slices.Concat([]byte("event: "+name+"\ndata: "), p.encode(value), []byte("\n\n"))
}
