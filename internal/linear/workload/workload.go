package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/benbjohnson/clock"

	"github.com/slotlease/slotlease/store"
)

// Plan is what the clients of one worker type do.
type Plan struct {
	WorkerType string
	// Keys is the length of the ledger: a client is done when it has seen a head this
	// high. So clients stay together without knowing of one another.
	Keys int64
	// Calls is the largest number of calls of one client.
	Calls int
	// Race lets clients append to each key in turn, and read it, without tails or trims,
	// so that each key can be checked alone.
	Race bool
	// InOrder lets clients append right above the newest key that they have just seen, and trim far below it, as workers do: more
	// than that store.Ledger doesn't promise of a Tail. Otherwise they leave gaps, now and then, and fill them later, and those that
	// trims left. A race is always by key.
	InOrder bool
	// Keep is the approximate number of records that trims leave; 0 means no trims.
	Keep int64
}

// far is how many more records trims leave where clients append in order: more than others append, in all likelihood, between what a
// client sees and what it appends.
const far = 10

// opsVar names the environment variable that sets the number of operations to check.
const opsVar = "SLOTLEASE_LINEAR_OPS"

// Operations is the number of operations to check in all: the standard, unless
// SLOTLEASE_LINEAR_OPS is set in the environment.
func Operations(standard int) (int, error) {
	text := os.Getenv(opsVar)
	if text == "" {
		return standard, nil
	}
	all, err := strconv.Atoi(text)
	if err != nil || all < 1 {
		return 0, fmt.Errorf("%s=%s: must be a positive number", opsVar, text)
	}
	return all, nil
}

// Round is the plan for the i-th worker type of a run: one in four is a race, two
// are trimmed.
func Round(i int, keys int64, calls int) Plan {
	p := Plan{WorkerType: fmt.Sprintf("round-%d", i), Keys: keys, Calls: calls}
	switch i % 4 {
	case 0:
		p.Race = true
	case 1:
		p.Keep = 2
	case 3:
		p.Keep = 8
	}
	return p
}

// Client is one caller of a ledger. Its methods must not be called at once.
type Client struct {
	ledger   store.Ledger
	clock    clock.Clock
	patience time.Duration
	name     string
	random   *rand.Rand

	plan Plan
	left int
	head int64 // the newest key known
}

// New returns a client that waits for each reply for a timeout, by a clock. Its calls
// follow from name and seed; no two clients of a ledger may share both.
func New(ledger store.Ledger, clk clock.Clock, patience time.Duration, name string, seed uint64) *Client {
	salt := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		salt = (salt ^ uint64(c)) * 1099511628211
	}
	return &Client{
		ledger: ledger, clock: clk, patience: patience, name: name,
		random: rand.New(rand.NewPCG(seed, salt)),
	}
}

// Work carries out the plan until it is done or the context ends.
func (c *Client) Work(ctx context.Context, p Plan) {
	c.plan, c.left, c.head = p, p.Calls, 0
	for c.left > 0 && c.head < p.Keys && ctx.Err() == nil {
		if p.Race {
			c.race(ctx)
		} else {
			c.mix(ctx)
		}
	}
}

// race fights for the next key.
func (c *Client) race(ctx context.Context) {
	c.head++
	if c.chance(15) {
		c.get(ctx, c.head)
	}
	err := c.append(ctx, c.head)
	if err != nil || c.chance(30) {
		c.get(ctx, c.head)
	}
}

// mix does one thing or another near the head.
func (c *Client) mix(ctx context.Context) {
	switch d := c.random.IntN(100); {
	case d < 45: // What a worker does.
		c.tail(ctx, 1)
		seq := c.head + 1
		if err := c.append(ctx, seq); err != nil && c.chance(50) {
			c.get(ctx, seq)
		}
	case d < 60:
		seq := max(1, c.head-3+c.random.Int64N(6))
		if c.plan.InOrder {
			c.tail(ctx, 1)
			seq = c.head + 1
		}
		_ = c.append(ctx, seq)
	case d < 80:
		c.get(ctx, max(1, c.head-4+c.random.Int64N(6)))
	case d < 84:
		c.get(ctx, 1+c.random.Int64N(c.head+1))
	case d < 95 || c.plan.Keep == 0:
		c.tail(ctx, 1+c.random.IntN(6))
	case d < 99 || c.plan.InOrder:
		before := c.head - c.plan.Keep + c.random.Int64N(3)
		if c.plan.InOrder {
			before -= far
		}
		c.trim(ctx, before)
	default:
		c.trim(ctx, store.MaxSeq) // All but the head.
	}
}

func (c *Client) chance(percent int) bool { return c.random.IntN(100) < percent }

// call is the context of one call.
func (c *Client) call(ctx context.Context) (context.Context, context.CancelFunc) {
	c.left--
	return c.clock.WithTimeout(ctx, c.patience)
}

func (c *Client) append(ctx context.Context, seq int64) error {
	ctx, cancel := c.call(ctx)
	defer cancel()
	err := c.ledger.Append(ctx, c.record(seq))
	if err == nil {
		c.head = max(c.head, seq)
	}
	return err
}

func (c *Client) get(ctx context.Context, seq int64) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	_, _ = c.ledger.Get(ctx, c.plan.WorkerType, seq)
}

func (c *Client) tail(ctx context.Context, limit int) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	if records, _, err := c.ledger.Tail(ctx, c.plan.WorkerType, limit); err == nil && len(records) > 0 {
		c.head = max(c.head, records[0].Seq)
	}
}

func (c *Client) trim(ctx context.Context, before int64) {
	ctx, cancel := c.call(ctx)
	defer cancel()
	_, _ = c.ledger.Trim(ctx, c.plan.WorkerType, before)
}

// record is a valid one that no other call makes.
func (c *Client) record(seq int64) store.Record {
	millis := func() time.Time { return store.FromMillis(c.random.Int64N(4e12)) }
	start := millis()
	return store.Record{
		WorkerType:  c.plan.WorkerType,
		Seq:         seq,
		Kind:        store.KindGrant,
		InstanceID:  c.name,
		Group:       fmt.Sprint("group-", c.random.IntN(3)),
		Claim:       fmt.Sprintf("%016x%016x", c.random.Uint64(), c.random.Uint64()),
		Priority:    c.random.IntN(8),
		SlotStart:   millis(),
		SlotEnd:     millis(),
		WindowStart: start,
		WindowEnd:   start.Add(time.Duration(1+c.random.Int64N(1e6)) * time.Millisecond),
		Token:       1 + c.random.Int64N(store.MaxSeq),
		Schedule:    fmt.Sprint("every ", c.random.IntN(60), "m"),
		FixedAt:     millis(),
		ReadAt:      millis(),
		Worker:      store.Worker{Host: "host.example", PID: c.random.IntN(1 << 22), Version: "v0.1.0"},
		Metadata:    fmt.Sprintf("%x", c.random.Uint64()),
		DoneUntil:   millis(),
		Attempt:     c.random.IntN(9),
	}
}

// Last is the name of the client that Compete lets read everything at the end.
const Last = "last"

// Compete lets n clients carry out a plan at once, and something happen meanwhile. Then the
// client Last settles it. client makes each of them, when it begins; Last has the number 0.
func Compete(ctx context.Context, p Plan, n int, client func(name string, i int) *Client, meanwhile func()) {
	var wg sync.WaitGroup
	for i := range n {
		c := client(fmt.Sprint("client-", i), i)
		wg.Go(func() { c.Work(ctx, p) })
	}
	meanwhile()
	wg.Wait()
	client(Last, 0).Settle(ctx, p)
}

// settled is the largest number of keys that Settle reads although they may be unused.
const settled = 100

// Settle reads the whole ledger at the end of a plan, key by key and at once: it shows
// any record that an earlier append left.
func (c *Client) Settle(ctx context.Context, p Plan) {
	c.plan, c.head = p, 0
	if !p.Race {
		c.tail(ctx, 1)
		c.tail(ctx, int(p.Keys)+settled)
	}
	for seq := int64(1); seq <= max(c.head, min(p.Keys, settled))+1; seq++ {
		c.get(ctx, seq)
	}
}
