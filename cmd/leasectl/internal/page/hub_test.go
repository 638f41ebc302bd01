package page

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slotlease/slotlease/cmd/leasectl/internal/inspect"
)

// counted is a look that counts itself, and fails while broken.
type counted struct {
	mu     sync.Mutex
	looks  int
	broken error
	takes  time.Duration
}

func (c *counted) look(context.Context, subject) (picture, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	time.Sleep(c.takes)
	c.looks++
	row := inspect.TypeStatus{WorkerType: "export"}
	return picture{status: inspect.Overview{Types: []inspect.TypeStatus{row}}, marks: map[string]any{"export": c.looks}}, c.broken
}

func (c *counted) set(broken error, takes time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken, c.takes = broken, takes
}

// hubOf is a hub whose events are told by their names, and by the errors of those that are stale.
func hubOf(t *testing.T, c *counted) (h *hub, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	h = &hub{
		ctx: ctx, look: c.look, watch: func(ctx context.Context) { <-ctx.Done() }, topics: map[subject]*topic{}, of: map[string]int{},
		event: func(name string, value any) []byte {
			if s, ok := value.(staleJSON); ok {
				name += ":" + s.Error
			}
			return []byte(name + "\n")
		},
	}
	return h, func() { h.close(cancel) }
}

// viewer is one that reads what it is told when a test wants it.
type viewer struct {
	h     *hub
	t     *topic
	n     int
	leave func()
}

func joined(t *testing.T, h *hub, of subject) *viewer {
	t.Helper()
	topic, leave, err := h.join(of, "192.0.2.1")
	must(t, err)
	return &viewer{h, topic, 0, leave}
}

// next are the events that weren't read yet.
func (v *viewer) next() []string {
	var told []byte
	told, v.n, _ = v.h.since(v.t, v.n)
	return strings.FieldsFunc(string(told), func(c rune) bool { return c == '\n' })
}

func TestAllViewersShareTheLooksAndWithoutViewersThereAreNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		h, end := hubOf(t, c)
		var viewers []*viewer
		for range 50 {
			viewers = append(viewers, joined(t, h, subject{view: "overview"}))
		}
		time.Sleep(10*time.Second + 1)
		synctest.Wait()
		if c.looks != 11 {
			t.Errorf("%d looks for 50 viewers in 10 s, want 11", c.looks)
		}
		for _, v := range viewers {
			v.leave()
		}
		time.Sleep(time.Minute)
		if c.looks != 11 {
			t.Errorf("%d looks after all have gone, want still 11", c.looks)
		}
		end()
	})
}

func TestWhoIsSlowHasTheWholeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		h, end := hubOf(t, c)
		v := joined(t, h, subject{view: "overview"})
		time.Sleep(1)
		synctest.Wait()
		first := v.next()
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := slices.Concat(first, v.next()); len(got) != 5 || got[0] != "status" || got[4] != "update" {
			t.Errorf("in 4 s came %q, want the status and 4 updates", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := v.next(); len(got) != 1 || got[0] != "status" {
			t.Errorf("after a minute are queued %q, want the status alone", got)
		}
		v.leave()
		end()
	})
}

func TestAStoreThatIsGoneOrSlowIsToldOnceAndItsReturnToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{broken: errors.New("gone")}
		h, end := hubOf(t, c)
		v := joined(t, h, subject{view: "overview"})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		late := joined(t, h, subject{view: "overview"})
		for name, got := range map[string][]string{"who is there": v.next(), "who comes": late.next()} {
			if len(got) != 1 || got[0] != "stale:gone" {
				t.Errorf("%s is told %q, want once that it is stale", name, got)
			}
		}
		c.set(nil, 0)
		time.Sleep(time.Second + 1)
		synctest.Wait()
		if got := v.next(); len(got) == 0 || got[0] != "status" {
			t.Errorf("then came %q, want the status", got)
		}
		c.set(nil, 20*time.Second)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if got := v.next(); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "stale:") || !strings.HasSuffix(got[len(got)-1], "many worker types") {
			t.Errorf("while a look takes long came %q, want stale, and what may be why", got)
		}
		v.leave()
		late.leave()
		end()
	})
}

func TestAHintIsHeardAtOnceAndTooManyViewersAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{}
		h, end := hubOf(t, c)
		v := joined(t, h, subject{view: "type", workerType: "a"})
		time.Sleep(100 * time.Millisecond)
		h.hinted("b")
		time.Sleep(soonest + 1)
		synctest.Wait()
		if c.looks != 1 {
			t.Errorf("%d looks after a hint about another type, want 1", c.looks)
		}
		h.hinted("a")
		h.hinted("a")
		time.Sleep(soonest + 1)
		synctest.Wait()
		if c.looks != 2 {
			t.Errorf("%d looks after hints, want 2", c.looks)
		}
		all := []*viewer{v}
		for range mostOfOne - 1 {
			all = append(all, joined(t, h, subject{view: "overview"}))
		}
		if _, _, err := h.join(subject{view: "overview"}, "192.0.2.1"); err == nil {
			t.Error("one address takes more than its places")
		}
		for range mostViewers - mostOfOne {
			topic, leave, err := h.join(subject{view: "overview"}, "jane")
			must(t, err)
			all = append(all, &viewer{h, topic, 0, leave})
		}
		if _, _, err := h.join(subject{view: "overview"}, "joe"); err == nil {
			t.Error("one too many is let in")
		}
		for _, v := range all {
			v.leave()
		}
		if len(h.of) != 0 || h.all != 0 || len(h.topics) != 0 {
			t.Errorf("after all have gone, viewers %v of topics %v are there", h.of, h.topics)
		}
		end()
	})
}
