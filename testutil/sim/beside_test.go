package sim_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/internal/race"
	"github.com/slotlease/slotlease/testutil/sim"
	"github.com/slotlease/slotlease/workerlease"
)

// deed is work that a process did under a lease, at an instant of true time.
type deed struct {
	at    time.Duration
	token int64
	who   string
}

// beside is code that works beside callbacks, and what it did.
type beside struct {
	length time.Duration

	mu      sync.Mutex
	origin  time.Time
	deeds   []deed // under claims of TryClaim
	claims  int    // that TryClaim got
	refused int
	guests  int // calls of RunIfHeld that ran
	tidied  int // of those, how many worked on when leasing was stopped
}

// now is true time, as a simulation's bubble has it.
func (b *beside) now() time.Duration { return time.Since(b.origin) }

// lives reports whether code of a process may go on.
func (b *beside) lives(p *sim.Process) bool {
	return b.now() <= b.length-3*time.Minute && !gone(p)
}

// gone reports whether a process is dead or has stopped leasing.
func gone(p *sim.Process) bool {
	if p.Dead() {
		return true
	}
	select {
	case <-p.Leasing().Done():
		return true
	default:
		return false
	}
}

// sleep waits by the clock of a process.
func sleep(p *sim.Process, d time.Duration) {
	<-p.Clock().Timer(d).C
}

// tries claims the rest of a slot now and then, works, and frees it or not.
func (b *beside) tries(p *sim.Process) {
	every := time.Duration(7+2*p.Worker) * time.Second
	for sleep(p, every); b.lives(p); sleep(p, every) {
		ctx, cancel := p.Clock().WithTimeout(context.Background(), 20*time.Second)
		c, err := p.Leasing().Client().TryClaim(ctx, workerlease.Options{
			WorkerType: "quiet", InstanceID: fmt.Sprint("try", p.Worker), LeaseInterval: time.Minute,
		})
		cancel()
		b.mu.Lock()
		if err == nil {
			b.claims++
		} else if errors.Is(err, workerlease.ErrNotClaimed) {
			b.refused++
		}
		n := b.claims
		b.mu.Unlock()
		if err != nil {
			continue
		}
		for range 1 + n%9 {
			if c.Lease.Valid() && !p.Dead() {
				b.mu.Lock()
				b.deeds = append(b.deeds, deed{b.now(), c.Lease.Token, "try of " + p.String()})
				b.mu.Unlock()
			}
			sleep(p, 3*time.Second)
		}
		if n%2 == 0 {
			_ = c.Release(context.Background())
		}
	}
}

// guest calls RunIfHeld now and then and works under the lease. When leasing is stopped it
// tidies up, as it may before it returns.
func (b *beside) guest(p *sim.Process) {
	every := time.Duration(2+p.Worker) * time.Second
	for sleep(p, every); b.lives(p); sleep(p, every) {
		held, _ := p.Leasing().RunIfHeld(context.Background(), func(ctx context.Context, l workerlease.Lease) error {
			p.Work(l)
			exporter{process: p}.wait(ctx, 15*time.Second)
			stopped := errors.Is(context.Cause(ctx), workerlease.ErrStopped)
			if stopped && !p.Dead() && b.now()+5*time.Second < l.Expiry.Sub(b.origin) {
				// The rest of the slot is not released before this has returned.
				sleep(p, 3*time.Second)
				p.Work(l)
				b.mu.Lock()
				b.tidied++
				b.mu.Unlock()
			} else if l.Valid() {
				p.Work(l)
			}
			return nil
		})
		if held {
			b.mu.Lock()
			b.guests++
			b.mu.Unlock()
		}
	}
}

// Code that claims once, and code that runs beside the callbacks, follow the same rules as
// callbacks: no two holders work at once, tokens grow, and nothing is released before all code
// has returned.
func TestCodeThatTriesToClaimOrAsksWhetherItHoldsIsExclusive(t *testing.T) {
	claims, refused, guests, tidied := 0, 0, 0, 0
	for seed := range fewer(6) {
		o := quiet(seed, time.Minute)
		o.Faults.Restarts, o.Faults.LostReply, o.Faults.Failed = 5*time.Minute, 0.1, 0.1
		inner := o.Worker
		o.Worker = func(n int) workerlease.Options {
			w := inner(n)
			if n > 2 {
				// These workers compete only by TryClaim.
				w.WorkerType, w.LeaseInterval = fmt.Sprint("aside", n), 7*24*time.Hour
			}
			return w
		}
		b := &beside{length: o.Length}
		o.Callbacks = func(p *sim.Process) workerlease.Callbacks {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.origin.IsZero() {
				b.origin = time.Now().Truncate(time.Minute) // A run begins at one.
			}
			if p.Worker > 2 {
				go b.tries(p)
			} else {
				go b.guest(p)
			}
			return sim.DefaultCallbacks(p)
		}
		r := sim.Run(t, o)
		r.Check(t)
		for _, l := range r.Leases {
			who := fmt.Sprintf("w%d.%d", l.Worker, l.Life)
			b.deeds = append(b.deeds, deed{l.Began, l.Token, who}, deed{l.Worked, l.Token, who})
		}
		slices.SortFunc(b.deeds, func(x, y deed) int { return cmp.Compare(x.at, y.at) })
		for i, d := range b.deeds[1:] {
			if before := b.deeds[i]; d.token < before.token || d.token == before.token && d.who != before.who {
				t.Errorf("seed %d: %s works at %v under token %d, after %s at %v under %d", seed, d.who, d.at, d.token, before.who, before.at, before.token)
			}
		}
		claims, refused, guests, tidied = claims+b.claims, refused+b.refused, guests+b.guests, tidied+b.tidied
	}
	t.Logf("%d claims that were tried came to a lease, %d to none; %d calls beside callbacks, %d of them tidied up", claims, refused, guests, tidied)
	if least := int(fewer(10)); claims < least || refused < least || guests < least || tidied < 1 && !race.Enabled {
		t.Error("too little went on")
	}
}
