package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slotlease/slotlease/store"
)

// rosterOperations are those of a roster.
var rosterOperations = []struct {
	name string
	call func(ctx context.Context, r store.Roster) error
}{
	{"Attend", func(ctx context.Context, r store.Roster) error {
		return r.Attend(ctx, []store.Presence{Presence("job", "late")})
	}},
	{"Leave", func(ctx context.Context, r store.Roster) error { return r.Leave(ctx, "job", []string{"a"}) }},
	{"Presences", func(ctx context.Context, r store.Roster) error { _, err := r.Presences(ctx, "job"); return err }},
	{"Presences of all", func(ctx context.Context, r store.Roster) error { _, err := r.Presences(ctx, ""); return err }},
}

// rosterEmptyCases begin before Init.
var rosterEmptyCases = []testCase{
	{"a roster that was never initialised works, or says ErrMissing", func(t *testing.T, b *bench) {
		for _, op := range rosterOperations {
			if err := op.call(within(t), asRoster(t, b.handle(t))); err != nil && !errors.Is(err, store.ErrMissing) {
				t.Errorf("%s without Init = %v, want it to work or ErrMissing", op.name, err)
			}
		}
		r := asRoster(t, b.Ledger)
		if err := b.Init(within(t)); err != nil {
			t.Fatalf("Init() = %v, want nil", err)
		}
		leave(t, r, "job", "late")
		attend(t, r, Presence("job", "a"))
		wantPresences(t, "Presences after Init", presences(t, r, ""), Presence("job", "a"))
	}},
	{"a roster works after Init by many at once, and Init removes nothing", func(t *testing.T, b *bench) {
		asRoster(t, b.Ledger)
		var wg sync.WaitGroup
		for i := range 8 {
			l := asRoster(t, b.handle(t))
			ctx := within(t)
			wg.Go(func() {
				if err := l.(store.Ledger).Init(ctx); err != nil {
					t.Errorf("Init() at the same time as others = %v, want nil", err)
				}
				if err := l.Attend(ctx, []store.Presence{Presence("job", fmt.Sprint(i))}); err != nil {
					t.Errorf("Attend() after Init = %v, want nil", err)
				}
			})
		}
		wg.Wait()
		wantPresences(t, "Presences", presences(t, asRoster(t, b.Ledger), ""), crowd("job", 8)...)
	}},
}

// crowd are the first n presences of a worker type.
func crowd(workerType string, n int) (all []store.Presence) {
	for i := range n {
		all = append(all, Presence(workerType, fmt.Sprint(i)))
	}
	return all
}

// attendanceCases are about handles of a roster, and about what is around it.
var attendanceCases = []testCase{
	{"handles see each other's presences at once", func(t *testing.T, b *bench) {
		first, second := asRoster(t, b.Ledger), asRoster(t, b.handle(t))
		for i := range 9 {
			p := Presence("job", "a")
			p.Failures = i
			attend(t, first, p)
			wantPresences(t, "Presences by another handle", presences(t, second, "job"), p)
			leave(t, second, "job", "a")
			wantPresences(t, "Presences after Leave by another handle", presences(t, first, ""))
		}
	}},
	{"of writers at the same time each stores what it attends, whole", writersAtOnce},
	{"closing a handle ends its operations with ErrClosed, and leaves what is stored", func(t *testing.T, b *bench) {
		r, other := asRoster(t, b.Ledger), asRoster(t, b.handle(t))
		attend(t, r, Presence("job", "a"))
		if err := b.Close(within(t)); err != nil {
			t.Fatalf("Close() = %v, want nil", err)
		}
		for _, op := range rosterOperations {
			if err := op.call(within(t), r); !errors.Is(err, store.ErrClosed) {
				t.Errorf("%s after Close = %v, want ErrClosed", op.name, err)
			}
		}
		wantPresences(t, "Presences by another handle", presences(t, other, ""), Presence("job", "a"))
	}},
	{"an ended context ends every operation at once with its error, and nothing is done", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		attend(t, r, Presence("job", "a"))
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		expired, cancel := context.WithDeadline(t.Context(), wall.Now().Add(-time.Hour))
		defer cancel()
		caused, end := context.WithCancelCause(t.Context())
		end(errors.New("lease expired"))
		for want, contexts := range map[error][]context.Context{context.Canceled: {cancelled, caused}, context.DeadlineExceeded: {expired}} {
			for _, ctx := range contexts {
				for _, op := range rosterOperations {
					began := wall.Now()
					err := op.call(ctx, r)
					if took := wall.Since(began); took > soon || !errors.Is(err, want) {
						t.Errorf("%s with an ended context = %v after %v, want an error that matches %v at once", op.name, err, took, want)
					}
				}
			}
		}
		wantPresences(t, "Presences afterwards", presences(t, r, ""), Presence("job", "a"))
	}},
	{"the roster and the ledger leave each other alone", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		attend(t, r, Presence("job", "a"), Presence("mail", "a"))
		wantTypes(t, b)
		wantSeqs(t, "Tail(job) beside a roster", tail(t, b, "job", 9))
		absent(t, b, "job", 1)
		wantTrim(t, b, "job", store.MaxSeq, 0)
		addRange(t, b, "job", 1, 5)
		addRange(t, b, "post", 1, 1)
		wantTypes(t, b, "job", "post")
		wantPresences(t, "Presences beside records", presences(t, r, ""), Presence("job", "a"), Presence("mail", "a"))
		wantPresences(t, "Presences(post)", presences(t, r, "post"))
		wantTrim(t, b, "job", 5, 4)
		wantTrim(t, b, "mail", store.MaxSeq, 0)
		wantPresences(t, "Presences after a trim", presences(t, r, ""), Presence("job", "a"), Presence("mail", "a"))
		if err := b.Init(within(t)); err != nil {
			t.Errorf("Init(), repeated = %v, want nil", err)
		}
		wantPresences(t, "Presences after Init", presences(t, r, ""), Presence("job", "a"), Presence("mail", "a"))
		leave(t, r, "job", "a")
		leave(t, r, "mail", "a")
		wantSeqs(t, "Tail(job) after Leave", tail(t, b, "job", 9), 5)
		wantRecord(t, "Get(job, 5)", get(t, b, "job", 5), Grant("job", 5))
		wantTypes(t, b, "job", "post")
		add(t, b, Grant("job", 6))
	}},
	{"a reader reads the roster, is denied to change it, and changes nothing", func(t *testing.T, b *bench) {
		r := asRoster(t, b.Ledger)
		attend(t, r, Presence("job", "a"), Presence("mail", "a"))
		reader := asRoster(t, b.reader(t))
		wantPresences(t, "Presences(job) by a reader", presences(t, reader, "job"), Presence("job", "a"))
		changed := Presence("job", "a")
		changed.InstanceID = "reader"
		if err := reader.Attend(within(t), []store.Presence{changed, Presence("job", "b")}); !errors.Is(err, store.ErrDenied) {
			t.Errorf("Attend() by a reader = %v, want ErrDenied", err)
		}
		if err := reader.Leave(within(t), "job", []string{"a"}); !errors.Is(err, store.ErrDenied) {
			t.Errorf("Leave() by a reader = %v, want ErrDenied", err)
		}
		for name, by := range map[string]store.Roster{"a reader": reader, "another": r} {
			wantPresences(t, "Presences afterwards by "+name, presences(t, by, ""), Presence("job", "a"), Presence("mail", "a"))
		}
		attend(t, r, Presence("job", "b"))
		wantPresences(t, "Presences(job) by a reader that is open", presences(t, reader, "job"), Presence("job", "a"), Presence("job", "b"))
	}},
	{"a planted presence comes back like an attended one, without the fields that are unknown", func(t *testing.T, b *bench) {
		r := b.planting(t)
		fields := PresenceFields(Presence("job", "a"))
		b.PlantPresence(t, "job", "a", fields)
		fields["futureText"], fields["futureNumber"] = "x", int64(7)
		fields["futureObject"] = map[string]any{"deep": map[string]any{"n": int64(7)}}
		b.PlantPresence(t, "job", "b", fields)
		b.PlantPresence(t, "job", "c", map[string]any{"instanceId": "w", "phase": "hologram"})
		other := Presence("job", "b")
		other.InstanceID = Presence("job", "a").InstanceID
		least := store.Presence{WorkerType: "job", ID: "c", InstanceID: "w", Phase: "hologram"}
		wantPresences(t, "Presences(job)", presences(t, r, "job"), Presence("job", "a"), other, least)
		attend(t, r, Presence("job", "b"))
		leave(t, r, "job", "a")
		wantPresences(t, "Presences(job) afterwards", presences(t, r, "job"), Presence("job", "b"), least)
	}},
	{"a planted presence that can't be decoded, or is invalid, is passed over", unfitPresences},
}

// planting skips the test if the harness plants no presences.
func (b *bench) planting(t *testing.T) store.Roster {
	t.Helper()
	r := asRoster(t, b.Ledger)
	if b.PlantPresence == nil {
		t.Skip("the harness has no PlantPresence")
	}
	return r
}

func unfitPresences(t *testing.T, b *bench) {
	r := b.planting(t)
	const huge = long(256 << 10)
	unfit := slices.Concat(
		set(gone{}, "instanceId", "phase"),
		set("", "instanceId", "phase"),
		set(int64(7), "instanceId", "phase", "why", "labels", "group"),
		set(huge, "instanceId", "phase", "why", "ineligible", "missed", "host"),
		set("many", "priority", "effective", "pid", "failures", "score", "labels", "since", "seen", "offset", "spreads"),
		set(map[string]any{"deep": "x"}, "instanceId", "priority", "seen", "score"),
		set(2.5, "priority", "failures", "score", "offset"),
		values("job", "x", []any{}, map[string]any{"timeout": int64(-1)}, map[string]any{"timeout": "x"}, map[string]any{"overrun": strings.Repeat("x", 33)}),
		values("failures", int64(-1), int64(store.MaxFailures+1), int64(1<<40)),
		values("labels", map[string]any{"": "x"}, map[string]any{"a": strings.Repeat("x", 257)}, map[string]any{"a": int64(7)}),
		values("seen", ages...), values("failedIn", ages...), values("missedFrom", ages...),
	)
	kept := []store.Presence{Presence("job", "a"), Presence("job", "z")}
	attend(t, r, kept...)
	for i, f := range unfit {
		fields := PresenceFields(Presence("job", "m"))
		if fields[f.name] = b.fit(f.value); f.value == any(gone{}) {
			delete(fields, f.name)
		}
		b.part(t, fmt.Sprintf("%s %d", f.name, i), func(t *testing.T) {
			b.PlantPresence(t, "job", fmt.Sprintf("m%d", i), fields)
			wantPresences(t, fmt.Sprintf("Presences(job) beside one with %s = %.40q", f.name, fmt.Sprint(fields[f.name])), presences(t, r, "job"), kept...)
		})
	}
	b.PlantPresence(t, "job", "m", map[string]any{})
	b.PlantPresence(t, "$job", "m", PresenceFields(Presence("job", "m")))
	b.PlantPresence(t, "job", "M", PresenceFields(Presence("job", "m")))
	wantPresences(t, "Presences beside those that are unfit", presences(t, r, ""), kept...)
	attend(t, r, Presence("job", "m0"))
	wantPresences(t, "Presences after Attend in place of one", presences(t, r, ""), append(kept, Presence("job", "m0"))...)
	leave(t, r, "job", "m0", "m1")
	wantPresences(t, "Presences after Leave", presences(t, r, ""), kept...)
}

// writersAtOnce attend presences of their own, one that all share, and remove some.
func writersAtOnce(t *testing.T, b *bench) {
	const writers, rounds, each = 6, 5, 12
	shared := func(writer, round int) store.Presence {
		p := Presence("shared", "a")
		p.InstanceID = fmt.Sprintf("writer %d in round %d", writer, round)
		p.Why, p.Labels = p.InstanceID, map[string]string{"by": p.InstanceID}
		return p
	}
	asRoster(t, b.Ledger)
	ctx := lasting(t, 2*patience)
	var wg sync.WaitGroup
	for w := range writers {
		r := asRoster(t, b.handle(t))
		wg.Go(func() {
			for round := range rounds {
				batch := []store.Presence{shared(w, round)}
				for i := range each {
					p := Presence("job", fmt.Sprintf("%d-%d", w, i))
					p.Failures = round
					batch = append(batch, p)
				}
				if err := r.Attend(ctx, batch); err != nil {
					t.Errorf("Attend() at the same time as others = %v, want nil", err)
				}
				if err := r.Leave(ctx, "job", []string{fmt.Sprintf("%d-%d", w, each-1), fmt.Sprintf("%d-x", (w+1)%writers)}); err != nil {
					t.Errorf("Leave() at the same time as others = %v, want nil", err)
				}
				if _, err := r.Presences(ctx, ""); err != nil {
					t.Errorf("Presences() at the same time as others = %v, want nil", err)
				}
			}
		})
	}
	wg.Wait()
	r := asRoster(t, b.Ledger)
	var want []store.Presence
	for w := range writers {
		for i := range each - 1 {
			p := Presence("job", fmt.Sprintf("%d-%d", w, i))
			p.Failures = rounds - 1
			want = append(want, p)
		}
	}
	wantPresences(t, "Presences(job)", presences(t, r, "job"), want...)
	got := presences(t, r, "shared")
	if len(got) != 1 || !strings.HasSuffix(got[0].InstanceID, fmt.Sprintf("in round %d", rounds-1)) {
		t.Fatalf("Presences(shared) = %+v, want one of the last round", got)
	}
	p := shared(0, 0)
	p.InstanceID = got[0].InstanceID
	p.Why, p.Labels = p.InstanceID, map[string]string{"by": p.InstanceID}
	wantPresences(t, "Presences(shared)", got, p)
}
