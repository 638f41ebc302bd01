package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// followCases are for stores that are a store.Follower; others pass them.
var followCases = []testCase{
	following("a record is appended above the one that its writer knows", func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1))
		for seq := int64(2); seq <= 4; seq++ {
			f := b.follower(t)
			if err := f.AppendAfter(within(t), Grant("job", seq), get(t, b, "job", seq-1)); err != nil {
				t.Fatalf("AppendAfter(job, %d) = %v, want nil", seq, err)
			}
			wantRecord(t, "Get", get(t, b, "job", seq), Grant("job", seq))
			wantSeqs(t, "Tail(job, 1)", tail(t, b, "job", 1), seq)
		}
	}),
	following("only the claim, the kind and the instance of the record below count", func(t *testing.T, b *bench) {
		add(t, b, Grant("job", 1))
		known := Grant("job", 1)
		known.Group, known.Priority, known.Schedule, known.Metadata, known.Worker = "other", 7, "", "other", store.Worker{}
		known.SlotStart, known.ReadAt, known.FixedAt, known.DoneUntil = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		if err := b.follower(t).AppendAfter(within(t), Grant("job", 2), known); err != nil {
			t.Errorf("AppendAfter() = %v, want nil", err)
		}
	}),
	following("without the record below the store went back, and nothing is stored", func(t *testing.T, b *bench) {
		wantWentBack(t, b, Grant("job", 2), Grant("job", 1)) // An empty ledger.
		addRange(t, b, "job", 1, 3)
		add(t, b, Grant("job", 6))
		wantWentBack(t, b, Grant("job", 5), Grant("job", 4)) // A gap.
		wantWentBack(t, b, Grant("job", 8), Grant("job", 7)) // Above the head.
		add(t, b, Grant("job2", 7))
		wantWentBack(t, b, Grant("job", 8), Grant("job", 7)) // Another worker type has it.
		wantTrim(t, b, "job", 3, 2)
		wantWentBack(t, b, Grant("job", 2), Grant("job", 1)) // Both were trimmed.
	}),
	following("with another record below the store went back, and nothing is stored", func(t *testing.T, b *bench) {
		for i, spoil := range []func(r *store.Record){
			func(r *store.Record) { r.Claim = "another" },
			func(r *store.Record) { r.Claim = strings.ToUpper(r.Claim) },
			func(r *store.Record) { r.Claim += " " },
			func(r *store.Record) { r.Kind = store.KindOrder },
			func(r *store.Record) { r.Kind = "Grant" },
			func(r *store.Record) { r.InstanceID = "another" },
			func(r *store.Record) { r.InstanceID = strings.ToUpper(r.InstanceID) },
			func(r *store.Record) { r.InstanceID += " " },
		} {
			there := claimed(fmt.Sprint("job", i), 1, "abc")
			there.InstanceID = "worker-é"
			add(t, b, there)
			known := there
			spoil(&known)
			next := there
			next.Seq = 2
			wantWentBack(t, b, next, known)
			if err := b.follower(t).AppendAfter(within(t), next, there); err != nil {
				t.Errorf("AppendAfter() above the record that is there = %v, want nil", err)
			}
		}
	}),
	following("a record below that can't be read is another one", func(t *testing.T, b *bench) {
		b.Plant(t, "job", 1, map[string]any{})
		wantWentBack(t, b, Grant("job", 2), Grant("job", 1))
		fields := Fields(Grant("mail", 1))
		delete(fields, "claim")
		b.Plant(t, "mail", 1, fields)
		wantWentBack(t, b, Grant("mail", 2), Grant("mail", 1))
	}),
	following("a conflict is one, whatever is below", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 2)
		add(t, b, Grant("job", 6))
		for what, prev := range map[string]store.Record{
			"the record that is there": Grant("job", 1), "another record": claimed("job", 1, "another"),
		} {
			wantConflictAfter(t, b, what, claimed("job", 2, "late"), prev)
		}
		wantConflictAfter(t, b, "no record", claimed("job", 6, "late"), Grant("job", 5))
		wantConflictAfter(t, b, "a retry", Grant("job", 2), Grant("job", 1))
		wantRecord(t, "Get(job, 2) after the conflicts", get(t, b, "job", 2), Grant("job", 2))
	}),
	following("what isn't right above the record below is refused with ErrInvalid", func(t *testing.T, b *bench) {
		addRange(t, b, "job", 1, 2)
		invalid, unread := Grant("job", 3), Grant("job", 2)
		invalid.Claim, unread.Defect = "", "can't be decoded"
		for _, c := range [][2]store.Record{
			{Grant("job", 3), Grant("job", 1)},
			{Grant("job", 3), Grant("job", 3)},
			{Grant("job", 3), Grant("job2", 2)},
			{Grant("job", 3), {}},
			{Grant("job", 3), unread},
			{invalid, Grant("job", 2)},
		} {
			if err := b.follower(t).AppendAfter(within(t), c[0], c[1]); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("AppendAfter(%s) above %s = %v, want ErrInvalid", store.Key(c[0].WorkerType, c[0].Seq), store.Key(c[1].WorkerType, c[1].Seq), err)
			}
		}
		wantSeqs(t, "Tail(job)", tail(t, b, "job", 9), 2, 1)
	}),
	following("a hint comes after a release, too", func(t *testing.T, b *bench) {
		if _, ok := store.As[store.Watcher](b.Ledger); !ok {
			return
		}
		w := watched(t, b.Ledger)
		w.begin(t, b)
		add(t, b, Grant("freed", 1))
		w.awaitAfter(t, "freed", func() {
			if err := b.follower(t).AppendAfter(within(t), freeing(store.KindRelease, "freed", 2), Grant("freed", 1)); err != nil {
				t.Errorf("AppendAfter(freed, 2) = %v, want nil", err)
			}
		})
		w.end(t, context.Canceled)
	}),
	following("of many appends above known records at once each has its own outcome", followCrowd),
	following("of 64 appends above one record exactly one wins", followRace),
}

// following is a case for a store.Follower.
func following(name string, run func(t *testing.T, b *bench)) testCase {
	return testCase{name, func(t *testing.T, b *bench) {
		if _, ok := store.As[store.Follower](b.Ledger); !ok {
			t.Log("the store is no store.Follower: workers read before they extend")
			return
		}
		run(t, b)
	}}
}

// follower is a handle that is a store.Follower: each is, if the first one was.
func (b *bench) follower(t *testing.T) store.Follower {
	t.Helper()
	f, ok := store.As[store.Follower](b.handle(t))
	if !ok {
		t.Fatal("a handle is no store.Follower, although the first one is")
	}
	return f
}

// wantWentBack demands that an append is refused, and stores nothing.
func wantWentBack(t *testing.T, b *bench, r, prev store.Record) {
	t.Helper()
	err := b.follower(t).AppendAfter(within(t), r, prev)
	if !errors.Is(err, store.ErrWentBack) || !errors.Is(err, store.ErrNotStored) || errors.Is(err, store.ErrConflict) {
		t.Errorf("AppendAfter(%s) = %v, want ErrWentBack and ErrNotStored", store.Key(r.WorkerType, r.Seq), err)
	}
	absent(t, b, r.WorkerType, r.Seq)
}

// wantConflictAfter demands that an append finds its key taken.
func wantConflictAfter(t *testing.T, b *bench, what string, r, prev store.Record) {
	t.Helper()
	if err := b.follower(t).AppendAfter(within(t), r, prev); !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrWentBack) {
		t.Errorf("AppendAfter(%s) above %s = %v, want ErrConflict: the key is taken", store.Key(r.WorkerType, r.Seq), what, err)
	}
}

// followCrowd lets one handle append all at once what fits, what is taken, and what has another record below, or none. A store may
// commit them together.
func followCrowd(t *testing.T, b *bench) {
	const each = 20
	ctx := lasting(t, 10*patience)
	f := b.follower(t)
	type attempt struct {
		r, prev store.Record
		want    error
	}
	var all []attempt
	for i := range each {
		for kind, want := range map[string]error{"fits": nil, "taken": store.ErrConflict, "another": store.ErrWentBack, "none": store.ErrWentBack} {
			a := attempt{claimed(fmt.Sprint(kind, i), 2, "second"), claimed(fmt.Sprint(kind, i), 1, "first"), want}
			if kind != "none" {
				add(t, b, a.prev)
			}
			switch kind {
			case "taken":
				add(t, b, claimed(a.r.WorkerType, 2, "earlier"))
			case "another":
				a.prev.Claim = "another"
			}
			all = append(all, a)
		}
	}
	start := make(chan struct{})
	var wg sync.WaitGroup
	for _, a := range all {
		wg.Go(func() {
			<-start
			if err := f.AppendAfter(ctx, a.r, a.prev); !errors.Is(err, a.want) {
				t.Errorf("AppendAfter(%s) = %v, want %v", store.Key(a.r.WorkerType, 2), err, a.want)
			}
		})
	}
	close(start)
	wg.Wait()
	for _, a := range all {
		switch {
		case a.want == nil:
			wantRecord(t, "an append that fits", get(t, b, a.r.WorkerType, 2), a.r)
		case errors.Is(a.want, store.ErrWentBack):
			absent(t, b, a.r.WorkerType, 2)
		}
	}
}

// followRace lets all racers append above one record, half of them by Append, then above the one that won.
func followRace(t *testing.T, b *bench) {
	handles := make([]store.Follower, raceHandles)
	for i := range handles {
		handles[i] = b.follower(t)
	}
	ctx := lasting(t, 10*patience)
	prev := claimed("job", 1, "first")
	add(t, b, prev)
	for seq := int64(2); seq <= int64(max(b.rounds()/20, 5)); seq++ {
		var mu sync.Mutex
		var won []string
		start := make(chan struct{})
		var wg sync.WaitGroup
		for g := range racers {
			r := claimed("job", seq, fmt.Sprintf("racer-%d-%d", g, seq))
			wg.Go(func() {
				<-start
				f := handles[g%raceHandles]
				err := f.AppendAfter(ctx, r, prev)
				switch {
				case err == nil:
					mu.Lock()
					defer mu.Unlock()
					won = append(won, r.Claim)
				case errors.Is(err, store.ErrWentBack):
					t.Errorf("AppendAfter(job, %d) = %v, but the record below is there", seq, err)
				case !errors.Is(err, store.ErrConflict):
					t.Logf("AppendAfter(job, %d) = %v: unknown", seq, err)
				}
			})
		}
		close(start)
		wg.Wait()
		prev = get(t, b, "job", seq)
		if len(won) > 1 || len(won) == 1 && won[0] != prev.Claim {
			t.Errorf("Seq %d: nil for %q, and it has claim %s, want at most one, and that", seq, won, prev.Claim)
		}
	}
}
