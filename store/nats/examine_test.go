package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/slotlease/slotlease/store"
	"github.com/slotlease/slotlease/store/internal/documenttest"
	"github.com/slotlease/slotlease/testutil/natspeer"
	"github.com/slotlease/slotlease/testutil/storetest"
)

// examined are the findings of an examination by their checks; of several the worst.
func examined(t testing.TB, l *Ledger) map[string]store.Finding {
	t.Helper()
	found, err := l.Describe().Examine(within(t))
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]store.Finding{}
	for _, f := range found {
		if was, twice := by[f.Check]; !twice || was.Level == store.LevelOK {
			by[f.Check] = f
		}
		if strings.Contains(f.Text+f.Remedy, canary) {
			t.Errorf("Examine() shows a password: %+v", f)
		}
	}
	return by
}

func TestDoctorNamesWhatOneServerLoses(t *testing.T) {
	t.Parallel()
	uri := fresh(natspeer.Shared(t))
	found := examined(t, initialised(t, uri))
	for check, says := range map[string]string{CheckSync: "acknowledge before they sync", CheckReplicas: "1 copy"} {
		if f := found[check]; f.Level != store.LevelWarn || !strings.Contains(f.Text, says) {
			t.Errorf("Examine() says %+v of %s, want %q", f, check, says)
		}
	}
	for _, check := range []string{store.CheckConnection, store.CheckExpiry, store.CheckRead, store.CheckAppend, store.CheckTrim, store.CheckRoster, CheckLimits, store.CheckTLS} {
		if f := found[check]; f.Level != store.LevelOK {
			t.Errorf("Examine() says %+v of %s", f, check)
		}
	}
	synced := opened(t, uri+"?syncAlways=true")
	if f := examined(t, synced)[CheckSync]; f.Level != store.LevelOK || !strings.Contains(synced.Durability().Power, "All survive") {
		t.Errorf("with syncAlways: %+v, and %+v", f, synced.Durability())
	}
}

func TestABucketThatDropsRecordsIsRefused(t *testing.T) {
	t.Parallel()
	server := natspeer.Shared(t)
	js := raw(t, server)
	for says, change := range map[string]func(c *jetstream.StreamConfig){
		"TTL":         func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"discard old": func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1<<20 },
		"retention":   func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy },
		"subjects":    func(c *jetstream.StreamConfig) { c.Subjects[0] = strings.Replace(c.Subjects[0], ">", "ledger.>", 1) },
	} {
		uri := fresh(server)
		name := strings.TrimPrefix(uri, server)
		c := jetstream.StreamConfig{Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew}
		change(&c)
		if _, err := js.CreateStream(within(t), c); err != nil {
			t.Fatal(err)
		}
		l := opened(t, uri)
		for what, err := range map[string]error{"Append()": l.Append(within(t), storetest.Grant("job", 1)), "Init()": l.Init(within(t))} {
			if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s in a bucket with %s = %v, want ErrRefused", what, says, err)
			}
		}
		if f := examined(t, l)[store.CheckExpiry]; f.Level != store.LevelFail || !strings.Contains(f.Text, says) {
			t.Errorf("Examine() of a bucket with %s says %+v", says, f)
		}
	}
}

func TestWarningsNameMemoryAndSpace(t *testing.T) {
	t.Parallel()
	server := natspeer.Shared(t)
	uri := fresh(server)
	name := strings.TrimPrefix(uri, server)
	js := raw(t, server)
	kv, err := js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: name, Storage: jetstream.MemoryStorage, MaxBytes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(within(t), "other", make([]byte, 4300)); err != nil {
		t.Fatal(err)
	}
	l := opened(t, uri)
	found := examined(t, l)
	if f := found[CheckReplicas]; f.Level != store.LevelWarn || !strings.Contains(f.Text, "in memory") || !strings.Contains(l.Durability().Crash, "None") {
		t.Errorf("Examine() of a bucket in memory says %+v, and Durability() %+v", f, l.Durability())
	}
	if f := found[CheckLimits]; f.Level != store.LevelWarn || !strings.Contains(f.Text, "bytes of 5000") {
		t.Errorf("Examine() of a bucket that is full says %+v", f)
	}
	_ = l.Append(within(t), storetest.Grant("job", 1))
	if w := l.Describe().Warning(); !strings.Contains(w, "in memory") {
		t.Errorf("Warning() = %q, want that it is in memory", w)
	}
	if err := l.Append(within(t), storetest.Grant("job", 2)); err == nil || errors.Is(err, store.ErrConflict) || !strings.Contains(err.Error(), "maximum bytes") {
		t.Errorf("Append() to a bucket that is full = %v", err)
	}
}

func TestErrorsHaveTheirSentinels(t *testing.T) {
	t.Parallel()
	server := natspeer.Start(t, users).URI()
	uri := fresh(server)
	initialised(t, as("admin", uri))
	for what, c := range map[string]struct {
		uri string
		is  error
	}{
		"without a user":          {uri, store.ErrDenied},
		"with a wrong password":   {strings.Replace(as("worker", uri), canary, canary+"x", 1), store.ErrDenied},
		"by a reader":             {as("reader", uri), store.ErrDenied},
		"to no bucket":            {as("worker", fresh(server)), store.ErrMissing},
		"to a server that's gone": {"nats://127.0.0.1:1/x", store.ErrNotStored},
	} {
		ctx := within(t)
		err := opened(t, c.uri).Append(ctx, storetest.Grant("job", 1))
		if !errors.Is(err, c.is) || !errors.Is(err, store.ErrNotStored) || ctx.Err() != nil || strings.Contains(fmt.Sprint(err), canary) {
			t.Errorf("Append() %s = %v, want %v at once, and that nothing was stored", what, err, c.is)
		}
	}
	if err := opened(t, as("reader", uri)).Describe().CheckRights(within(t)); !errors.Is(err, store.ErrDenied) {
		t.Errorf("CheckRights() of a reader = %v, want ErrDenied", err)
	}
	if err := opened(t, as("worker", uri)).Describe().CheckRights(within(t)); err != nil {
		t.Errorf("CheckRights() of a worker = %v", err)
	}
	found := examined(t, opened(t, as("reader", uri)))
	for _, check := range []string{store.CheckAppend, store.CheckTrim, store.CheckRoster} {
		if f := found[check]; f.Level == store.LevelOK || !strings.Contains(f.Remedy, "allow the user to publish") {
			t.Errorf("Examine() of a reader says %+v of %s", f, check)
		}
	}
}

func TestAClusterSurvivesTheLossOfAServer(t *testing.T) {
	t.Parallel()
	servers, at := natspeer.Cluster(t)
	uri := fresh(at)
	l := initialised(t, uri)
	seq := int64(0)
	persist := func(do func(context.Context) error) { // tries until it is done: servers elect a leader meanwhile
		t.Helper()
		documenttest.Comes(t, "what servers do", func(ctx context.Context, _ int) error {
			err := do(ctx) // A reply that a dead server owed never comes.
			if errors.Is(err, store.ErrConflict) {
				return nil
			}
			return err
		})
	}
	write := func() {
		t.Helper()
		seq++
		persist(func(ctx context.Context) error { return l.Append(ctx, storetest.Grant("job", seq)) })
	}
	write()
	if d := l.Durability(); !strings.Contains(d.Crash, "majority") || !strings.Contains(d.Power, "before they sync") {
		t.Errorf("Durability() of three servers = %+v", d)
	}
	if now, err := l.Now(within(t)); err != nil || now.Skew != DefaultServerSkew || now.Server == "" || now.History == "" {
		t.Errorf("Now() = %+v, %v", now, err)
	}
	if now, err := opened(t, uri+"?serverSkew=777ms").Now(within(t)); err != nil || now.Skew != 777*time.Millisecond {
		t.Errorf("Now() with serverSkew = %+v, %v", now, err)
	}
	for _, s := range servers {
		s.Kill()
		write()
		s.Restart()
		write()
	}
	var got []store.Record
	persist(func(ctx context.Context) (err error) {
		got, _, err = l.Tail(ctx, "job", 100)
		return err
	})
	if len(got) != int(seq) {
		t.Errorf("Tail() = %d records, want %d", len(got), seq)
	}
}
