package cosmos_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/cosmos"
	"github.com/slotlease/slotlease/testutil/cosmospeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// unknown demands an error that doesn't say that the append was decided.
func unknown(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s = nil, want an error", what)
	}
	for _, decided := range []error{store.ErrConflict, store.ErrInvalid, store.ErrNotFound, store.ErrMissing, store.ErrRefused, store.ErrDenied, store.ErrClosed} {
		if errors.Is(err, decided) {
			t.Errorf("%s = %v, want an unknown outcome", what, err)
		}
	}
}

func TestOneOf32ConcurrentAppendsWinsInEachRound(t *testing.T) {
	t.Parallel()
	const contenders, handles = 32, 4
	rounds := int64(200)
	if cosmos.RaceEnabled {
		rounds = 50
	}
	uri := cosmospeer.URI(t)
	name := newDatabase(t, past(t, uri))
	ledgers := []*cosmos.Ledger{ready(t, cosmos.Options{URI: uri, Database: name})}
	for len(ledgers) < handles {
		ledgers = append(ledgers, opened(t, cosmos.Options{URI: uri, Database: name}))
	}
	ctx := lasting(t, 10*patience)
	began := time.Now()
	for seq := int64(1); seq <= rounds; seq++ {
		errs := make([]error, contenders)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				r := storetest.Grant("job", seq)
				r.Claim = fmt.Sprint("claim-", i)
				errs[i] = ledgers[i%handles].Append(ctx, r)
			})
		}
		wg.Wait()
		winner := ""
		for i, err := range errs {
			switch {
			case err == nil && winner == "":
				winner = fmt.Sprint("claim-", i)
			case err == nil:
				t.Fatalf("round %d: Append() of %s and of claim-%d = nil, want one winner", seq, winner, i)
			case !errors.Is(err, store.ErrConflict):
				t.Fatalf("round %d: Append() = %v, want nil or ErrConflict", seq, err)
			}
		}
		got, err := ledgers[seq%handles].Get(ctx, "job", seq)
		if err != nil || winner == "" || got.Claim != winner {
			t.Fatalf("round %d: Get() = %q, %v, want the one that won, %q", seq, got.Claim, err, winner)
		}
	}
	took := time.Since(began)
	t.Logf("%d rounds of %d appends over %d handles: one winner each; %v, %.0f appends/s",
		rounds, contenders, handles, took.Round(time.Millisecond), float64(rounds*contenders)/took.Seconds())
}

func TestHandleOutlivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	peer := cosmospeer.Start(t)
	l := ready(t, cosmos.Options{URI: peer.URI()})
	first, second := storetest.Grant("job", 1), storetest.Grant("job", 2)
	if err := l.Append(lasting(t, patience), first); err != nil {
		t.Fatalf("Append() = %v, want nil", err)
	}
	peer.Kill()
	for range 3 { // Again while the handle may already know that nobody is there.
		began := time.Now()
		err := l.Append(lasting(t, 300*time.Millisecond), second)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Append() to a dead server took %v, want it to end with its context", took)
		}
		unknown(t, "Append() to a dead server", err)
	}
	peer.Restart()
	if got, err := l.Get(lasting(t, patience), "job", 1); err != nil || got != first {
		t.Errorf("Get(job, 1) after a restart = %+v, %v, want what was acknowledged", got, err)
	}
	if err := l.Append(lasting(t, patience), second); err != nil {
		t.Errorf("Append() after a restart = %v, want nil", err)
	}
	if s, err := l.Now(lasting(t, patience)); err != nil || s.IsZero() {
		t.Errorf("Now() after a restart = %+v, %v, want a stamp", s, err)
	}
}

func TestHandleThatWasOpenedBeforeTheServerWasThereWorksOnceItIs(t *testing.T) {
	t.Parallel()
	peer := cosmospeer.Start(t)
	ready(t, cosmos.Options{URI: peer.URI()})
	peer.Kill()
	l := opened(t, cosmos.Options{URI: peer.URI()})
	for range 2 {
		began := time.Now()
		_, _, err := l.Tail(lasting(t, 300*time.Millisecond), "job", 1)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Tail() of a dead server took %v, want it to end with its context", took)
		}
		unknown(t, "Tail() of a dead server", err)
	}
	peer.Restart()
	if _, _, err := l.Tail(lasting(t, patience), "job", 1); err != nil {
		t.Errorf("Tail() after the server's start = %v, want nil: the first failure must not stick", err)
	}
	if err := l.Append(lasting(t, patience), storetest.Grant("job", 1)); err != nil {
		t.Errorf("Append() after the server's start = %v, want nil", err)
	}
}

func TestServerThatLostItsDataHasNoLedger(t *testing.T) {
	t.Parallel()
	peer := cosmospeer.Start(t)
	l := ready(t, cosmos.Options{URI: peer.URI()})
	if err := l.Append(lasting(t, patience), storetest.Grant("job", 1)); err != nil {
		t.Fatalf("Append() = %v, want nil", err)
	}
	peer.RestartEmpty()
	if records, _, err := l.Tail(lasting(t, patience), "job", 1); !errors.Is(err, store.ErrMissing) {
		t.Errorf("Tail() of a lost ledger = %v, %v, want ErrMissing: it is not an empty one", records, err)
	}
	if got, err := l.Get(lasting(t, patience), "job", 1); !errors.Is(err, store.ErrMissing) || errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get() of a lost ledger = %v, %v, want ErrMissing", got, err)
	}
	if err := l.Append(lasting(t, patience), storetest.Grant("job", 1)); !errors.Is(err, store.ErrMissing) {
		t.Errorf("Append() to a lost ledger = %v, want ErrMissing", err)
	}
	if err := l.Init(lasting(t, patience)); err != nil {
		t.Fatalf("Init() = %v, want nil", err)
	}
	if err := l.Append(lasting(t, patience), storetest.Grant("job", 1)); err != nil {
		t.Errorf("Append() after Init() = %v, want nil", err)
	}
}

func TestAppendToASilentServerIsUnknownAndMayLandLater(t *testing.T) {
	t.Parallel()
	peer := cosmospeer.Start(t)
	l := ready(t, cosmos.Options{URI: peer.URI()})
	if err := l.Append(lasting(t, patience), storetest.Grant("job", 1)); err != nil {
		t.Fatalf("Append() = %v, want nil", err)
	}
	peer.Pause()
	late := storetest.Grant("job", 2)
	began := time.Now()
	err := l.Append(lasting(t, 300*time.Millisecond), late)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("Append() to a silent server took %v, want it to end with its context", took)
	}
	unknown(t, "Append() to a silent server", err)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append() to a silent server = %v, want context.DeadlineExceeded in it", err)
	}
	began = time.Now()
	if err := l.Close(lasting(t, 300*time.Millisecond)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close() with a silent server = %v, want nil or its deadline", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("Close() with a silent server took %v, want it to end with its context", took)
	}
	peer.Resume()

	// The request lies in the server's receive buffer. Whether it is done is for
	// the key to say, and it can't be done twice, nor in place of another.
	l = opened(t, cosmos.Options{URI: peer.URI()})
	rival := late
	rival.Claim = "rival"
	err = l.Append(lasting(t, patience), rival)
	got, getErr := l.Get(lasting(t, patience), "job", 2)
	switch {
	case getErr != nil:
		t.Errorf("Get(job, 2) = %v, want one of the two records", getErr)
	case err == nil && got.Claim != rival.Claim, errors.Is(err, store.ErrConflict) && got.Claim != late.Claim, err != nil && !errors.Is(err, store.ErrConflict):
		t.Errorf("the rival's Append() = %v, and the key holds claim %s: they contradict each other", err, got.Claim)
	}
}

func TestURINamesDatabaseAndContainer(t *testing.T) {
	t.Parallel()
	uri := cosmospeer.URI(t)
	client := past(t, uri)
	name := newDatabase(t, client)
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name + "/my-leases"
	l := ready(t, cosmos.Options{URI: u.String()})
	if err := l.Append(lasting(t, patience), storetest.Grant("job", 1)); err != nil {
		t.Fatalf("Append() = %v, want nil", err)
	}
	c, err := client.NewContainer(name, "my-leases")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Read(lasting(t, patience), nil)
	if err != nil || len(got.ContainerProperties.PartitionKeyDefinition.Paths) != 1 || got.ContainerProperties.PartitionKeyDefinition.Paths[0] != "/workerType" {
		t.Errorf("container my-leases = %+v, %v, want the partition key /workerType", got.ContainerProperties, err)
	}
}

// What an operation costs is its requests times what Microsoft charges for each.
func TestEachOperationIsOneRequest(t *testing.T) {
	t.Parallel()
	peer := cosmospeer.Start(t)
	requests := &counter{}
	l := ready(t, cosmos.Options{URI: peer.URI(), Transport: requests})
	ctx := lasting(t, 10*patience)
	for seq := int64(1); seq <= 3; seq++ {
		if err := l.Append(ctx, storetest.Grant("job", seq)); err != nil {
			t.Fatalf("Append() = %v, want nil", err)
		}
	}
	// The peer answers the first query for its time with 400.
	if _, _, err := l.Tail(ctx, "job", 1); err != nil {
		t.Fatalf("Tail() = %v, want nil", err)
	}
	if _, err := l.Now(ctx); err != nil {
		t.Fatalf("Now() = %v, want nil", err)
	}
	requests.taken()
	for _, c := range []struct {
		name string
		do   func(ctx context.Context) error
		want map[string]int
	}{
		{"Append", func(ctx context.Context) error { return l.Append(ctx, storetest.Grant("job", 4)) }, map[string]int{"POST item": 1}},
		{"Append that loses", func(ctx context.Context) error {
			if err := l.Append(ctx, storetest.Grant("job", 4)); !errors.Is(err, store.ErrConflict) {
				return fmt.Errorf("%w, want ErrConflict", err)
			}
			return nil
		}, map[string]int{"POST item": 1}},
		{"Get", func(ctx context.Context) error { _, err := l.Get(ctx, "job", 4); return err }, map[string]int{"GET item": 1}},
		{"Tail", func(ctx context.Context) error { _, _, err := l.Tail(ctx, "job", 3); return err }, map[string]int{"POST query": 1}},
		{"Tail of nothing", func(ctx context.Context) error { _, _, err := l.Tail(ctx, "nobody", 1); return err }, map[string]int{"POST query": 1}},
		{"Now", func(ctx context.Context) error { _, err := l.Now(ctx); return err }, map[string]int{"POST query": 1}},
	} {
		ctx, receipt := store.WithReceipt(ctx)
		if err := c.do(ctx); err != nil {
			t.Errorf("%s = %v, want nil", c.name, err)
		}
		got := requests.taken()
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: requests %v, want %v", c.name, got, c.want)
		}
		// The peer charges 1 for each.
		if receipt.Units() != 1 {
			t.Errorf("%s: charged %v, want 1", c.name, receipt.Units())
		}
		t.Logf("%s: %v", c.name, got)
	}
}

// The peer has no GetCurrentTimestamp, so its time is the Date header's.
func TestStampsOfAServerThatOnlyHasTheDateHeader(t *testing.T) {
	t.Parallel()
	peer := cosmospeer.Start(t)
	l := ready(t, cosmos.Options{URI: peer.URI()})
	if err := l.Append(lasting(t, patience), storetest.Grant("job", 1)); err != nil {
		t.Fatalf("Append() = %v, want nil", err)
	}
	for name, read := range map[string]func(context.Context) (store.Stamp, error){
		"Now":             l.Now,
		"Tail":            func(ctx context.Context) (store.Stamp, error) { _, s, err := l.Tail(ctx, "job", 1); return s, err },
		"Tail of nothing": func(ctx context.Context) (store.Stamp, error) { _, s, err := l.Tail(ctx, "nobody", 1); return s, err },
	} {
		for range 3 { // The first may find out that the server doesn't know the function.
			sent := time.Now()
			s, err := read(lasting(t, patience))
			received := time.Now()
			if err != nil || s.Granularity < time.Second || s.MaxAge < time.Second || s.Skew != 250*time.Millisecond {
				t.Errorf("%s: stamp %+v, %v, want a granularity and a MaxAge of 1 s, and a skew of 250 ms", name, s, err)
			}
			// The peer's clock is that of this machine.
			if s.Time.After(received) || s.Time.Add(s.Granularity+s.MaxAge).Before(sent) {
				t.Errorf("%s: stamp %+v of a request at %v … %v, want it to bracket them", name, s, sent, received)
			}
		}
	}
	// A write of one's own reports its time, too.
	ctx, receipt := store.WithReceipt(lasting(t, patience))
	sent := time.Now()
	if err := l.Append(ctx, storetest.Grant("job", 2)); err != nil {
		t.Fatalf("Append() = %v, want nil", err)
	}
	if s := receipt.Stamp(); s.Granularity != time.Second || s.Time.After(time.Now()) || s.Time.Add(s.Granularity+s.MaxAge).Before(sent) {
		t.Errorf("stamp of an append %+v at %v, want a granularity of 1 s that brackets it", s, sent)
	}
}
